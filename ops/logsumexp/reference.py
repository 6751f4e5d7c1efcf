"""Logarithm of a sum of exponentials in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor) -> torch.Tensor:
    """Apply torch.logsumexp in float32, and round once to x's dtype."""
    return torch.logsumexp(x.float(), -1).to(x.dtype)


def golden(x: torch.Tensor) -> torch.Tensor:
    """Apply torch.logsumexp; a row of -Inf only gives -Inf and has no gradient, +Inf gives +Inf."""
    return torch.logsumexp(x, -1)


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))
