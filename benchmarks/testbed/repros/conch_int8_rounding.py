"""conch-triton-kernels 1.3: scaled_int8_quant cuts the fraction off; vLLM's kernel, its model, rounds to nearest."""

import torch
from _setup import DEVICE, report
from conch.ops.quantization.int8 import scaled_int8_quant

x = torch.tensor([[0.9, 1.9, -0.9, -1.9]], device=DEVICE)
quantized, _ = scaled_int8_quant(x, torch.ones(1, device=DEVICE))
report(quantized.tolist() != [[1, 2, -1, -2]], f"{x.tolist()} becomes {quantized.tolist()}")
