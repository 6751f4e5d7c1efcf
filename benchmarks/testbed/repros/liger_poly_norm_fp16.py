"""liger-kernel 0.8.5: poly_norm takes x^6 in the dtype of x; float16 overflows from x = 6.4 on."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.poly_norm import LigerPolyNormFunction

x = torch.full((1, 4), 8.0, device=DEVICE, dtype=torch.float16)
weight = torch.tensor([1.0, 0.0, 0.0], device=DEVICE, dtype=torch.float16)  # the norm of x^3 alone: 1
y = LigerPolyNormFunction.apply(x, weight, torch.zeros((), device=DEVICE, dtype=torch.float16))
report(abs(y[0, 0].item() - 1) > 0.01, f"norm of x^3 at x = 8 is {y[0, 0].item()}, right is 1")
