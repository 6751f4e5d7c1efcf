"""Cross entropy in eager PyTorch: the reference, the FP64 golden, and the samples.

A row with +Inf, or of -Inf only, has no softmax: its loss, its lse and its gradient are NaN. An ignored row counts for
nothing, whatever its logits are.
"""

import torch

from opcheck import Case, Sample


def reference(
    logits: torch.Tensor,
    target: torch.Tensor,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Apply torch's own cross entropy in float32 to the rows that are not ignored; loss and lse are float32."""
    wide = logits.float()
    lse = _lse(wide)
    kept = target != ignore_index
    losses = torch.nn.functional.cross_entropy(
        wide[kept], target[kept], reduction="none", label_smoothing=label_smoothing
    )
    losses = losses + lse_square_scale * lse[kept].square()
    return _reduced(losses, kept, reduction), lse


def golden(
    logits: torch.Tensor,
    target: torch.Tensor,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `(1 - e) * (lse - x[target]) + e * (lse - mean(x)) + z * lse^2`, and lse."""
    lse = _lse(logits)
    kept = target != ignore_index
    x, row_lse = logits[kept], lse[kept]
    losses = (1 - label_smoothing) * (row_lse - x.gather(1, target[kept][:, None])[:, 0])
    if label_smoothing:
        losses = losses + label_smoothing * (row_lse - x.mean(1))
    return _reduced(losses + lse_square_scale * row_lse.square(), kept, reduction), lse


def samples(case: Case) -> Sample:
    """Draw logits `[rows, classes]` and a class for each row; every third row, from the second on, is ignored."""
    logits = case.tensor("rows", "classes", name="logits")
    target = case.integers(0, max(case.dims["classes"], 1), "rows", name="target")
    target[1::3] = -1
    return Sample(logits, target, reduction="none", ignore_index=-1)


def _lse(x: torch.Tensor) -> torch.Tensor:
    """Return log(sum(exp(x))) over the last dimension; the shift by the maximum cancels."""
    maximum = x.amax(-1, keepdim=True).detach()
    return maximum.squeeze(-1) + (x - maximum).exp().sum(-1).log()


def _reduced(losses: torch.Tensor, kept: torch.Tensor, reduction: str) -> torch.Tensor:
    """Reduce the losses of the kept rows; with "none" the ignored rows are 0."""
    if reduction == "none":
        return torch.zeros_like(kept, dtype=losses.dtype).index_put((kept,), losses)
    return losses.sum() / kept.sum() if reduction == "mean" else losses.sum()
