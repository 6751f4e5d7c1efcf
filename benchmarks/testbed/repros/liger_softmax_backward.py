"""liger-kernel 0.8.5: the backward of softmax multiplies and adds up in float16 or bfloat16."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.softmax import LigerSoftmaxFunction

x = torch.zeros(16, 1024, device=DEVICE, dtype=torch.float16)
x[:, -1] = 8.0
upstream = torch.randn(16, 1024, device=DEVICE, dtype=torch.float16)
gradients = []
for softmax in (LigerSoftmaxFunction.apply, lambda v: torch.softmax(v, -1), lambda v: torch.softmax(v.double(), -1)):
    leaf = x.clone().requires_grad_()
    softmax(leaf).backward(upstream.to(softmax(leaf).dtype))
    gradients.append(leaf.grad.double())
liger, aten, right = gradients
error, beside = ((each - right).abs().max().item() for each in (liger, aten))
report(error > 2 * beside, f"error of the gradient {error:.1e}, that of torch.softmax {beside:.1e}")
