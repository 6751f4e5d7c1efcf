"""Softmax in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor) -> torch.Tensor:
    """Apply torch.softmax, which computes narrow dtypes in float32 and rounds once."""
    return torch.softmax(x, -1)


def golden(x: torch.Tensor) -> torch.Tensor:
    """Compute `exp(x - max) / sum(exp(x - max))`; the shift by the maximum cancels."""
    exponentials = torch.exp(x - x.amax(-1, keepdim=True).detach())
    return exponentials / exponentials.sum(-1, keepdim=True)


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))
