"""conch-triton-kernels 1.3: gelu_tanh_and_mul reads a strided input as if its last dimension were contiguous."""

import torch
from _setup import DEVICE, report
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul

x = torch.randn(8, 4, device=DEVICE).T  # silu_and_mul asserts that x is contiguous; this one does not
wrong = (gelu_tanh_and_mul(x) - gelu_tanh_and_mul(x.contiguous())).abs().max().item()
report(wrong > 1e-3, f"a transposed x changes the result by {wrong:.2g}")
