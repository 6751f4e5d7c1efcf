"""liger-kernel 0.8.5: the weight of the linear layer gets no gradient where its input needs none (a frozen body)."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction

x = torch.randn(4, 16, device=DEVICE)
weight = torch.randn(8, 16, device=DEVICE, requires_grad=True)
target = torch.tensor([1, 2, 0, 3], device=DEVICE)
loss = LigerFusedLinearCrossEntropyFunction.apply(x, weight, target)[0]
loss.backward()
# Whether any gradient is computed is asked of the input alone; the loss still says that it can be differentiated.
report(
    weight.grad is None or not weight.grad.any(), f"loss.requires_grad {loss.requires_grad}, weight.grad {weight.grad}"
)
