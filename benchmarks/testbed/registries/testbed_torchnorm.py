"""torchnorm 0.1.2: the fused kernels that its modules call on a GPU."""

import torch
from torchnorm import _triton

from opcheck import Case, Sample, adopt


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Compute `x * rsqrt(mean(x^2) + eps) * weight`."""
    return _triton.fused_rms_norm(x, weight, eps)


def rms_norm_golden(x, weight, eps=1e-6):
    """Compute `x / sqrt(mean(x^2) + eps) * weight`."""
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm_reference(x, weight, eps=1e-6):
    """Do the same in float32 and round once."""
    return rms_norm_golden(x.float(), weight.float(), eps).to(x.dtype)


def rms_norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]` and weight `[cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), case.tensor("cols", name="weight"), eps=1e-6)


def fused_add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the RMS norm of x + residual, and x + residual."""
    return _triton.fused_add_rms_norm(x, residual, weight, eps)


def fused_add_rms_norm_golden(x, residual, weight, eps=1e-6):
    """Add and normalize."""
    total = x + residual
    return rms_norm_golden(total, weight, eps), total


def fused_add_rms_norm_reference(x, residual, weight, eps=1e-6):
    """Do as the package's own fallback for CPU tensors does: add in x's dtype, then normalize."""
    total = x + residual
    return rms_norm_reference(total, weight, eps), total


def fused_add_rms_norm_samples(case: Case) -> Sample:
    """Draw x and residual `[..., rows, cols]` and weight `[cols]`."""
    return Sample(
        case.tensor("...", "rows", "cols", name="x"),
        case.tensor("...", "rows", "cols", name="residual"),
        case.tensor("cols", name="weight"),
        eps=1e-6,
    )


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Normalize the last dimension by mean and variance."""
    return _triton.fused_layer_norm(x, weight, bias, eps)


def layer_norm_golden(x, weight, bias, eps=1e-5):
    """Compute `(x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias`."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(-1, keepdim=True) + eps) * weight + bias


def layer_norm_reference(x, weight, bias, eps=1e-5):
    """Do the same in float32 and round once."""
    return layer_norm_golden(x.float(), weight.float(), bias.float(), eps).to(x.dtype)


def layer_norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`, weight and bias `[cols]`."""
    return Sample(
        case.tensor("...", "rows", "cols", name="x"),
        case.tensor("cols", name="weight"),
        case.tensor("cols", name="bias"),
        eps=1e-5,
    )


for _op in (rms_norm, fused_add_rms_norm, layer_norm):
    _name, _given = _op.__name__, globals()
    adopt(
        _op,
        name=f"torchnorm::{_name}",
        reference=_given[f"{_name}_reference"],
        golden=_given[f"{_name}_golden"],
        samples=_given[f"{_name}_samples"],
    )
