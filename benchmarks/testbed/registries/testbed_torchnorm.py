"""torchnorm 0.1.2: the fused kernels that its modules call on a GPU."""

import testbed_formulas as formulas
import torch
from torchnorm import _triton

from opcheck import adopt


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Compute `x * rsqrt(mean(x^2) + eps) * weight`."""
    return _triton.fused_rms_norm(x, weight, eps)


def fused_add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the RMS norm of x + residual, and x + residual."""
    return _triton.fused_add_rms_norm(x, residual, weight, eps)


def fused_add_rms_norm_reference(x, residual, weight, eps=1e-6):
    """Do as the package's own fallback for CPU tensors does: add in x's dtype, then normalize."""
    total = x + residual
    return formulas.rms_norm_reference(total, weight, eps), total


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Normalize the last dimension by mean and variance."""
    return _triton.fused_layer_norm(x, weight, bias, eps)


for _op in (rms_norm, fused_add_rms_norm, layer_norm):
    _name, _given = _op.__name__, {**vars(formulas), **globals()}
    adopt(
        _op,
        name=f"torchnorm::{_name}",
        reference=_given[f"{_name}_reference"],
        golden=_given[f"{_name}_golden"],
        samples=_given[f"{_name}_samples"],
    )
