"""Cumulative sum in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor) -> torch.Tensor:
    """Scan in float32 by doubling (Hillis and Steele, 1986), and round once to x's dtype.

    On the CPU torch.cumsum adds up float32 in float64, which no float32 kernel can be held to.
    """
    y, step = x.float(), 1
    while step < x.shape[-1]:
        y = y + torch.nn.functional.pad(y[..., :-step], (step, 0))
        step *= 2
    return y.to(x.dtype)


def golden(x: torch.Tensor) -> torch.Tensor:
    """Apply torch.cumsum."""
    return torch.cumsum(x, -1)


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))
