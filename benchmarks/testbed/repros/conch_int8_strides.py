"""conch-triton-kernels 1.3: scaled_int8_quant reads a slice of a wider tensor as if it were not one."""

import torch
from _setup import DEVICE, report
from conch.ops.quantization.int8 import scaled_int8_quant

wide = torch.arange(32.0, device=DEVICE).reshape(4, 8)
quantized, _ = scaled_int8_quant(wide[:, :4], torch.ones(1, device=DEVICE))
report(quantized[1, 0].item() != 8, f"row 1 of the slice begins with 8; it gives {quantized[1].tolist()}")
