"""Liger's normalizations."""

import testbed_formulas as formulas
import torch
from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
from liger_kernel.ops.group_norm import LigerGroupNormFunction
from liger_kernel.ops.layer_norm import LigerLayerNormFunction
from liger_kernel.ops.poly_norm import LigerPolyNormFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction

from opcheck import Case, Sample, adopt


def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    offset: float = 0.0,
    casting_mode: str = "llama",
    in_place: bool = False,
) -> torch.Tensor:
    """Compute `x * rsqrt(mean(x^2) + eps) * (offset + weight)`."""
    return LigerRMSNormFunction.apply(x, weight, eps, offset, casting_mode, in_place)


def rms_norm_reference(x, weight, eps=1e-6, offset=0.0, casting_mode="llama", in_place=False):
    """Do as Llama does (round before the weight), or as Gemma does (round at the end)."""
    wide = x.float()
    y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    if casting_mode == "gemma":
        return (y * (offset + weight.float())).to(x.dtype)
    return y.to(x.dtype) * (offset + weight)


def rms_norm_golden(x, weight, eps=1e-6, offset=0.0, casting_mode="llama", in_place=False):
    """Compute `x / sqrt(mean(x^2) + eps) * (offset + weight)`."""
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * (offset + weight)


def fused_add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the RMS norm of x + residual, and x + residual."""
    return LigerFusedAddRMSNormFunction.apply(x, residual, weight, eps)


def fused_add_rms_norm_reference(x, residual, weight, eps=1e-6):
    """Add in x's dtype, then normalize as Llama does."""
    total = x + residual
    return rms_norm_reference(total, weight, eps), total


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Normalize the last dimension by mean and variance."""
    return LigerLayerNormFunction.apply(x, weight, bias, eps)


def group_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, groups: int = 2, eps: float = 1e-6
) -> torch.Tensor:
    """Normalize groups of channels of x `[batch, channels, length]`."""
    return LigerGroupNormFunction.apply(x, weight, bias, x.shape[1], groups, eps)


def group_norm_reference(x, weight, bias, groups=2, eps=1e-6):
    """Apply torch's group_norm in float32 and round once."""
    return torch.group_norm(x.float(), groups, weight.float(), bias.float(), eps).to(x.dtype)


def group_norm_golden(x, weight, bias, groups=2, eps=1e-6):
    """Compute it from mean and centred variance."""
    grouped = x.reshape(x.shape[0], groups, x.shape[1] // groups * x.shape[2])
    centered = grouped - grouped.mean(-1, keepdim=True)
    normal = centered / torch.sqrt(centered.square().mean(-1, keepdim=True) + eps)
    return normal.reshape(x.shape) * weight[:, None] + bias[:, None]


def group_norm_samples(case: Case) -> Sample:
    """Draw x `[batch, channels, length]`, weight and bias `[channels]`."""
    return Sample(
        case.tensor("batch", "channels", "length", name="x"),
        case.tensor("channels", name="weight"),
        case.tensor("channels", name="bias"),
        groups=2,
        eps=1e-6,
    )


def poly_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-6, in_place: bool = False
) -> torch.Tensor:
    """Compute `w0 norm(x^3) + w1 norm(x^2) + w2 norm(x) + b`."""
    return LigerPolyNormFunction.apply(x, weight, bias, eps, in_place)


def poly_norm_golden(x, weight, bias, eps=1e-6, in_place=False):
    """Sum the three weighted RMS norms of powers."""
    powers = (x**3, x**2, x)
    normal = [power / torch.sqrt(power.square().mean(-1, keepdim=True) + eps) for power in powers]
    return sum(w * term for w, term in zip(weight.unbind(), normal, strict=True)) + bias


def poly_norm_reference(x, weight, bias, eps=1e-6, in_place=False):
    """Do the same in float32 and round once."""
    return poly_norm_golden(x.float(), weight.float(), bias.float(), eps).to(x.dtype)


def poly_norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`, weight `[three]` and a scalar bias."""
    return Sample(
        case.tensor("...", "rows", "cols", name="x"),
        case.tensor("three", name="weight"),
        case.tensor(name="bias"),
        eps=1e-6,
    )


for _op in (rms_norm, fused_add_rms_norm, layer_norm, group_norm, poly_norm):
    _name, _given = _op.__name__, {**vars(formulas), **globals()}
    adopt(
        _op,
        name=f"liger::{_name}",
        reference=_given[f"{_name}_reference"],
        golden=_given[f"{_name}_golden"],
        samples=_given[f"{_name}_samples"],
    )
