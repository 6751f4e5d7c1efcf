"""liger-kernel 0.8.5: logits that are not contiguous get their own value, scaled, as their gradient."""

import torch
from _setup import DEVICE, report
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

target = torch.tensor([1, 2, 0, 3], device=DEVICE)
values = torch.randn(5, 4, device=DEVICE)
gradients = []
for loss in (
    lambda x: LigerCrossEntropyFunction.apply(x, target, None)[0],
    lambda x: torch.nn.functional.cross_entropy(x, target),
):
    leaf = values.clone().requires_grad_()
    loss(leaf.T).backward()  # .T: [4, 5], the stride of the classes is 4
    gradients.append(leaf.grad)
liger, right = gradients
# forward makes a contiguous copy, which does not require a gradient, and asks that copy whether one is wanted.
report(not torch.allclose(liger, right, atol=1e-5), f"gradient {liger[0].tolist()}, right is {right[0].tolist()}")
