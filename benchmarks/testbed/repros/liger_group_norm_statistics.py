"""liger-kernel 0.8.5: group_norm takes the variance as E[x^2] - E[x]^2, which cancels where the mean is not 0."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.group_norm import LigerGroupNormFunction

x = torch.randn(1, 2, 256, device=DEVICE) + 1000.0
weight, bias = torch.ones(2, device=DEVICE), torch.zeros(2, device=DEVICE)
liger = LigerGroupNormFunction.apply(x, weight, bias, 2, 2, 1e-6)
right = torch.group_norm(x.double(), 2, eps=1e-6)
aten = torch.group_norm(x, 2, weight, bias, 1e-6)
error, beside = ((each.double() - right).abs().max().item() for each in (liger, aten))
report(error > 10 * beside, f"float32, mean 1000: error {error:.1e}, that of torch.group_norm {beside:.1e}")
