"""RMS normalization in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Normalize x `[..., cols]` with float32 statistics; the output is in x's dtype."""
    wide = x.float()
    normalized = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (normalized * weight.float()).to(x.dtype)


def golden(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Compute `x / sqrt(mean(x^2) + eps) * weight`."""
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]` and weight `[cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), case.tensor("cols", name="weight"), eps=1e-6)
