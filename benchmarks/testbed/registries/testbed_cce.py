"""cut-cross-entropy 25.1.1: cross entropy of a linear layer, without its logits in memory."""

import torch
from cut_cross_entropy import linear_cross_entropy as cce

from opcheck import Case, Sample, adopt

IGNORED = -100


def linear_cross_entropy(
    e: torch.Tensor,
    c: torch.Tensor,
    targets: torch.Tensor,
    reduction: str = "mean",
    softcap: float | None = None,
) -> torch.Tensor:
    """Return the cross entropy of `e @ c^T`; no gradient is left out as too small."""
    return cce(e, c, targets, softcap=softcap, reduction=reduction, filter_eps=None)


def linear_cross_entropy_golden(e, c, targets, reduction="mean", softcap=None):
    """Multiply, cap, take the loss of the rows that are not ignored."""
    kept = targets != IGNORED
    logits = (e @ c.T)[kept]
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    largest = logits.amax(-1, keepdim=True).detach()
    lse = largest.squeeze(-1) + (logits - largest).exp().sum(-1).log()
    losses = lse - logits.gather(1, targets[kept][:, None])[:, 0]
    if reduction == "none":
        return torch.zeros_like(kept, dtype=losses.dtype).index_put((kept,), losses)
    return losses.mean() if reduction == "mean" else losses.sum()


def linear_cross_entropy_reference(e, c, targets, reduction="mean", softcap=None):
    """Do the same in float32, as the kernel accumulates the logits."""
    return linear_cross_entropy_golden(e.float(), c.float(), targets, reduction, softcap)


def linear_cross_entropy_samples(case: Case) -> Sample:
    """Draw e `[rows, hidden]`, c `[classes, hidden]` and classes; every third row, from the second on, is ignored."""
    e, c = case.tensor("rows", "hidden", name="e"), case.tensor("classes", "hidden", name="c")
    c = c * max(case.dims["hidden"], 1) ** -0.5  # logits of the size that layers are initialized for
    targets = case.integers(0, max(case.dims["classes"], 1), "rows", name="targets")
    targets[1::3] = IGNORED
    return Sample(e, c, targets)


adopt(
    linear_cross_entropy,
    name="cce::linear_cross_entropy",
    reference=linear_cross_entropy_reference,
    golden=linear_cross_entropy_golden,
    samples=linear_cross_entropy_samples,
)
