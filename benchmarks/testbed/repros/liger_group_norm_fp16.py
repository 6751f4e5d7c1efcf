"""liger-kernel 0.8.5: group_norm rounds the float16 gradients of weight and bias to bfloat16 (pull request #1253)."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.group_norm import LigerGroupNormFunction

x = torch.randn(1, 2, 64, device=DEVICE, dtype=torch.float16)
weight = torch.ones(2, device=DEVICE, dtype=torch.float16, requires_grad=True)
bias = torch.zeros(2, device=DEVICE, dtype=torch.float16, requires_grad=True)
upstream = torch.zeros(1, 2, 64, device=DEVICE, dtype=torch.float16)
upstream[..., 0] = 1 + 2**-10  # the gradient of bias, exactly; bfloat16 has no such number
LigerGroupNormFunction.apply(x, weight, bias, 2, 2, 1e-6).backward(upstream)
report(bias.grad[0].item() != 1 + 2**-10, f"gradient of bias {bias.grad[0].item():.7f}, right is {1 + 2**-10:.7f}")
