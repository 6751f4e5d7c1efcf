"""Residual addition and RMS normalization in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add in x's dtype, then normalize the sum with float32 statistics; both outputs are in x's dtype."""
    total = x + residual
    wide = total.float()
    normalized = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (normalized * weight.float()).to(x.dtype), total


def golden(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `t / sqrt(mean(t^2) + eps) * weight` and `t = x + residual`."""
    total = x + residual
    return total / torch.sqrt(total.square().mean(-1, keepdim=True) + eps) * weight, total


def samples(case: Case) -> Sample:
    """Draw x and residual `[..., rows, cols]` and weight `[cols]`."""
    x = case.tensor("...", "rows", "cols", name="x")
    residual = case.tensor("...", "rows", "cols", name="residual")
    return Sample(x, residual, case.tensor("cols", name="weight"), eps=1e-6)
