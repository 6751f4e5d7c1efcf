"""cut-cross-entropy 25.1.1: the logit of the target is a sum of products that are rounded to float16 or bfloat16."""

import torch
from _setup import DEVICE, report
from cut_cross_entropy import linear_cross_entropy

e = torch.randn(16, 256, device=DEVICE).to(torch.bfloat16)
c = (torch.randn(64, 256, device=DEVICE) / 16).to(torch.bfloat16)
targets = torch.arange(16, device=DEVICE)
loss = linear_cross_entropy(e, c, targets, reduction="none", filter_eps=None)
upcast, right = (
    torch.nn.functional.cross_entropy(each(e) @ each(c).T, targets, reduction="none").double()
    for each in (torch.Tensor.float, torch.Tensor.double)
)
error, beside = ((each.double() - right).abs().max().item() for each in (loss, upcast))
# (e * c).to(tl.float32): upcast after the product; the logsumexp beside it is accumulated by tl.dot, in float32.
report(error > 100 * beside, f"error of the loss {error:.1e}, with the operands upcast first {beside:.1e}")
