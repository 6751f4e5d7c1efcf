"""torch 2.11.0: on a GPU the partial sums of cumsum are rounded to float16."""

import torch
from _setup import DEVICE, report

x = torch.randn(64, 1024, device=DEVICE).half()
right = x.double().cumsum(-1)
once = (right.half().double() - right).abs().max().item()
error = (x.cumsum(-1).double() - right).abs().max().item()
report(error > 1.5 * once, f"error {error:.1e}, that of one rounding {once:.1e}")
