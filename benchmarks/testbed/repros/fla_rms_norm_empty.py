"""fla-core 0.6.0: the backward of rms_norm of an empty batch, which forward takes, divides by zero."""

import torch
from _setup import DEVICE, report
from fla.modules.layernorm import rms_norm

x = torch.empty(0, 8, device=DEVICE, requires_grad=True)
weight, bias = (torch.ones(8, device=DEVICE, requires_grad=True) for _ in range(2))
y = rms_norm(x, weight, bias)
try:
    y.sum().backward()
except ZeroDivisionError as error:
    report(True, f"forward gives {tuple(y.shape)}, backward ZeroDivisionError: {error}")
report(False, "backward runs")
