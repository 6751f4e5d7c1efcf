"""One correct rounding and the unit in the last place, exact in float64, on tensors.

Rounding and ulp follow IEEE 754-2019 (sections 3.3 and 4.3.1). torch's own casts are not used to round: from float64 to
anything narrower than float32 they go through float32 and so round twice.
"""

import math
from typing import Final

import torch
from torch import Tensor

from opcheck.core.formats import FORMATS, Format, format_of, ulp_scalar

__all__ = ["FORMATS", "Format", "finite", "format_of", "round_to", "ulp", "ulp_scalar", "upcast_exact"]

# Layout of a float64: 52 stored fraction bits below 11 exponent bits, which are biased by 1023.
_FRACTION_BITS: Final = 52
_BIAS: Final = 1023
_EXPONENT_MASK: Final = 0x7FF << _FRACTION_BITS


def round_to(g: Tensor, fmt: Format) -> Tensor:
    """Round float64 `[*S]` to the nearest number of `fmt`, ties to even, in one step; return float64 `[*S]`.

    Subnormals, NaN and the sign of zero are kept. What rounds beyond `fmt.max` becomes +-Inf even where the format has
    no Inf, as the mark of an overflow: saturation is the caller's policy. Raise TypeError unless `g` is float64.

    With the quantum `q = 2^(max(floor(log2|g|), e_min) - precision + 1)`, the float64 numbers of `[2^52 q, 2^53 q)`
    are exactly the multiples of q there, so the addition `|g| + 2^52 q` rounds |g| to a multiple of q in the
    arithmetic's own nearest-even mode, and the subtraction that follows is exact.
    """
    exponent = _exponent_field(g)
    if fmt.name == "float64":
        return g.detach().clone()
    # Beyond e_max + 1 all overflows; the clamp keeps 2^52 q finite there.
    exponent.clamp_((fmt.e_min + _BIAS) << _FRACTION_BITS, (fmt.e_max + 1 + _BIAS) << _FRACTION_BITS)
    shift = exponent.add_((_FRACTION_BITS - fmt.precision + 1) << _FRACTION_BITS).view(torch.float64)
    rounded = g.detach().abs().add_(shift).sub_(shift)
    return rounded.masked_fill_(rounded > fmt.max, math.inf).copysign_(g.detach())


def ulp(g: Tensor, fmt: Format) -> Tensor:
    """Return the unit in the last place of `fmt` at float64 `[*S]`, as float64 `[*S]`.

    It is `2^(max(floor(log2|g|), e_min) - precision + 1)`: the smallest subnormal at 0, NaN at Inf and NaN. Beyond
    `fmt.max` the exponent goes on as if unbounded. Raise TypeError unless `g` is float64.
    """
    exponent = _exponent_field(g).clamp_(min=(fmt.e_min + _BIAS) << _FRACTION_BITS)
    power = exponent.view(torch.float64).mul_(2.0 * fmt.unit)
    # g - g is 0 where g is finite and NaN elsewhere.
    return power.add_(g.detach() - g.detach())


def upcast_exact(t: Tensor) -> Tensor:
    """Convert a real tensor `[*S]` of any floating-point, integer or bool dtype to float64 `[*S]`, without loss.

    Two limits: int64 and uint64 beyond 2^53 are rounded (integers are compared as integers, not here), and after
    `torch.set_flush_denormal(True)` a CPU reads subnormals of bfloat16 and float32 as 0. A float64 tensor comes back
    sharing its memory. Raise TypeError for a complex tensor.
    """
    if t.is_complex():
        raise TypeError(f"upcast_exact takes real tensors, not {t.dtype}; convert with torch.view_as_real first")
    return t.detach().to(torch.float64)


def finite(t: Tensor) -> Tensor:
    """Say of each element of a floating-point tensor `[*S]` whether it is finite; torch cannot of 8-bit floats."""
    return (t.to(torch.float32) if t.dtype.itemsize == 1 else t).isfinite()


def _exponent_field(g: Tensor) -> Tensor:
    """Return the exponent bits of float64 `[*S]` in place, as new int64 `[*S]`; sign and fraction are cleared."""
    if g.dtype != torch.float64:
        raise TypeError(f"expected a float64 tensor, not {g.dtype}; convert with upcast_exact first")
    return g.detach().resolve_neg().view(torch.int64) & _EXPONENT_MASK
