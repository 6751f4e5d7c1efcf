"""Variance in eager PyTorch: the reference, the FP64 golden, its terms, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    """Compute the variance in two float32 passes, and round once to x's dtype.

    On the CPU torch.var adds up float32 in float64, which no float32 kernel can be held to.
    """
    return terms(x.float(), correction).sum(-1).to(x.dtype)


def golden(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    """Compute `sum((x - mean)^2) / (cols - correction)`."""
    return terms(x, correction).sum(-1)


def terms(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    """Return `(x - mean)^2 / (cols - correction)` `[..., cols]`, which add up to the variance.

    The mean counts as a constant: its gradient is that of a sum of deviations, 0.
    """
    centered = x - x.mean(-1, keepdim=True).detach()
    return centered.square() / max(x.shape[-1] - correction, 0)


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), correction=0)
