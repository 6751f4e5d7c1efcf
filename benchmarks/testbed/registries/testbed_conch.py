"""conch-triton-kernels 1.3: inference kernels, without gradients."""

import torch
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul as conch_gelu
from conch.ops.activation.silu_and_mul import silu_and_mul as conch_silu
from conch.ops.normalization.rms_norm import rms_norm as conch_rms_norm
from conch.ops.quantization.int8 import scaled_int8_quant as conch_int8

from opcheck import Case, Sample, adopt


def halves(case: Case) -> Sample:
    """Draw gate and up side by side `[..., rows, cols]`, cols even."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Compute `x * rsqrt(mean(x^2) + eps) * weight`."""
    return conch_rms_norm(x, weight, eps)


def rms_norm_golden(x, weight, eps=1e-6):
    """Compute `x / sqrt(mean(x^2) + eps) * weight`."""
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm_reference(x, weight, eps=1e-6):
    """Normalize in float32, round, and multiply in x's dtype, as Llama does."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rms_norm_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]` and weight `[cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), case.tensor("cols", name="weight"), eps=1e-6)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """Compute `silu(gate) * up` of the two halves of x's last dimension."""
    return conch_silu(x)


def silu_and_mul_golden(x):
    """Compute `gate * sigmoid(gate) * up`."""
    gate, up = x.chunk(2, -1)
    return gate * torch.sigmoid(gate) * up


def silu_and_mul_reference(x):
    """Take silu in float32 and round it before the product."""
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate.float()).to(x.dtype) * up


def gelu_tanh_and_mul(x: torch.Tensor) -> torch.Tensor:
    """Compute `gelu_tanh(gate) * up` of the two halves of x's last dimension."""
    return conch_gelu(x)


def gelu_tanh_and_mul_golden(x):
    """Compute `gate * sigmoid(2 sqrt(2/pi) (gate + 0.044715 gate^3)) * up`."""
    gate, up = x.chunk(2, -1)
    return gate * torch.sigmoid(2 * (2 / torch.pi) ** 0.5 * (gate + 0.044715 * gate**3)) * up


def gelu_tanh_and_mul_reference(x):
    """Take gelu as torch does, and multiply in x's dtype."""
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.gelu(gate, approximate="tanh") * up


def scaled_int8_quant(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Round `x / scale` to int8."""
    return conch_int8(x, scale)[0]


def scaled_int8_quant_golden(x, scale):
    """Divide, round to nearest even, clip."""
    return (x / scale).round().clamp(-128, 127)


def scaled_int8_quant_reference(x, scale):
    """Divide in float32, round to nearest even, clip: what the CUDA kernel does that this one is a port of."""
    return (x.float() / scale).round().clamp(-128, 127).to(torch.int8)


def scaled_int8_quant_samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`; a scale that a tensor of normals fills the range with."""
    x = case.tensor("rows", "cols", name="x")
    return Sample(x, torch.full((1,), 1 / 32, dtype=torch.float32, device=x.device))


for _op, _samples in (
    (rms_norm, rms_norm_samples),
    (silu_and_mul, halves),
    (gelu_tanh_and_mul, halves),
    (scaled_int8_quant, scaled_int8_quant_samples),
):
    _name, _given = _op.__name__, globals()
    adopt(
        _op,
        name=f"conch::{_name}",
        reference=_given[f"{_name}_reference"],
        golden=_given[f"{_name}_golden"],
        samples=_samples,
    )
