"""conch-triton-kernels 1.3: gelu_tanh_and_mul of float16 or bfloat16 raises: libdevice's tanh takes neither."""

import torch
from _setup import DEVICE, report
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul

try:
    gelu_tanh_and_mul(torch.randn(2, 8, device=DEVICE, dtype=torch.float16))
except Exception as error:
    report(True, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
report(False, "float16 runs")
