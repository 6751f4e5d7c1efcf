"""fla-core 0.6.0: the gradient of cross entropy starts from logsumexp rounded to float32: large logits lose digits."""

import torch
from _setup import DEVICE, report
from fla.modules.fused_cross_entropy import cross_entropy_loss

target = torch.tensor([0], device=DEVICE)
gradients = []
for loss in (
    lambda x: cross_entropy_loss(x, target)[0],
    lambda x: torch.nn.functional.cross_entropy(x, target),
    lambda x: torch.nn.functional.cross_entropy(x.double(), target),
):
    leaf = torch.tensor([[1000.0, 1000.3, 999.1]], device=DEVICE, requires_grad=True)
    loss(leaf).sum().backward()
    gradients.append(leaf.grad.double())
fla, aten, right = gradients
error, beside = ((each - right).abs().max().item() for each in (fla, aten))
report(error > 10 * beside, f"logits about 1000: error of the gradient {error:.1e}, that of torch {beside:.1e}")
