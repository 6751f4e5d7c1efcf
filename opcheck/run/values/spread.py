"""Families that draw every element alike, from standard normals `[*S]` in float32."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from opcheck.core.formats import FORMATS, Format

Fill = Callable[[Tensor, Format, bool], Tensor]

FLOAT32 = FORMATS["float32"]  # in which the values are made, float64's too
FP8 = FORMATS["float8_e4m3fn"]
LARGEST_STEPS = 127  # the largest int8
ROOM_FOR_SUMS = 14  # binades: a gradient sums over rows what overflows or not by the order of the terms
STEPS_UP = 7  # binades over which halfway values are spread, so that many of them are distinct


def uniform_of(x: Tensor) -> Tensor:
    """Return the normal distribution function of x: uniform in `[0, 1]` for standard normals."""
    return 0.5 * (1.0 + torch.erf(x * math.sqrt(0.5)))


def _normal(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return x


def _uniform(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return uniform_of(x)


def _large_mean(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return x + 4.0


def _far_mean(x: Tensor, fmt: Format, first: bool) -> Tensor:
    """Move the mean as far as a standard deviation of 1 is still four units in the last place."""
    return x + min(1000.0, math.ldexp(1.0, fmt.precision - 3))


def _extreme_logits(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return x * (60.0 if fmt.name in ("float16", "float8_e5m2", "float8_e4m3fn") else 300.0)


def _zeros(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return torch.zeros_like(x)


def _signed_zeros(x: Tensor, fmt: Format, first: bool) -> Tensor:
    at = torch.arange(x.numel(), device=x.device).reshape(x.shape) % 3
    return torch.where(at == 0, 0.0, torch.where(at == 1, -0.0, x))


def _small_integers(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return (1.5 * x).round().clamp(-3.0, 3.0) + 0.0  # which turns -0 into +0


def _cancelling(x: Tensor, fmt: Format, first: bool) -> Tensor:
    """Pair neighbours along the last dimension: v and -v + w in the first tensor, u and u in the others.

    Then a sum, and a sum of products, is as small as the w are, and its terms are not.
    """
    if x.dim() == 0 or x.shape[-1] < 2:
        return x
    out = x.clone()
    even, odd = out[..., 0 : out.shape[-1] // 2 * 2 : 2], out[..., 1::2]
    if first:
        even *= min(100.0, math.ldexp(1.0, fmt.precision - 2))
        even.copy_(even.to(getattr(torch, fmt.name)))
        odd -= even
    else:
        odd.copy_(even)
    return out


def _halfway(x: Tensor, fmt: Format, first: bool) -> Tensor:
    """Use significands k of all bits, odd and below 2/3 of the binade's end: 1.5 k needs one bit more, a tie."""
    if not first:
        return torch.full_like(x, 1.5)
    low, high = 1 << (fmt.precision - 1), (1 << (fmt.precision + 1)) // 3
    count = max(1, (high - low) // 2)
    odd = low + 1 + 2 * (uniform_of(x) * count).floor().clamp(max=count - 1)
    binades = 1 + min(STEPS_UP, max(0, fmt.e_max - fmt.precision - 1))
    up = torch.arange(x.numel(), device=x.device).reshape(x.shape) % binades
    return torch.copysign(torch.ldexp(odd, up), x)


def _half_steps(x: Tensor, fmt: Format, first: bool) -> Tensor:
    if not first:
        return torch.ones_like(x)
    count = min(LARGEST_STEPS - 1, (1 << (fmt.precision - 1)) - 1)
    steps = torch.copysign((uniform_of(x) * count).floor().clamp(max=count - 1) + 0.5, x)
    if x.dim():
        steps[..., 0] = LARGEST_STEPS  # a scale of max / 127 is then 1
    return steps


def _half_steps_fp8(x: Tensor, fmt: Format, first: bool) -> Tensor:
    """Use significands of a bit more than the grid has, odd, over its binades and the steps below its smallest normal.

    In a type of fewer bits than that they are rounded, and no ties.
    """
    if not first:
        return torch.ones_like(x)
    bits = FP8.precision
    span = FP8.e_max - FP8.e_min  # binades of normal numbers below the last, in which the largest is
    binade = torch.arange(x.numel(), device=x.device).reshape(x.shape) % (span + 1) - 1
    first_odd = torch.where(binade < 0, 0, 1 << (bits - 1))
    count = 1 << (bits - 1)
    steps = first_odd + (uniform_of(x) * count).floor().clamp(max=count - 1) + 0.5
    ties = torch.copysign(torch.ldexp(steps, binade.clamp(min=0) + (FP8.e_min - bits + 1)), x)
    if x.dim():
        ties[..., 0] = FP8.max  # a scale of max / 448 is then 1
    return ties


def _near_overflow(x: Tensor, fmt: Format, first: bool) -> Tensor:
    """Leave room for sums of some thousand terms where the accumulator has no wider exponent than the type."""
    largest = fmt.max if fmt.e_max < FLOAT32.e_max else math.ldexp(FLOAT32.max, -ROOM_FOR_SUMS)
    return torch.copysign((0.125 + 0.375 * uniform_of(x)) * largest, x)


def _subnormal(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return torch.copysign(uniform_of(x) * math.ldexp(1.0, max(fmt.e_min, FLOAT32.e_min)), x)


def _saturating(x: Tensor, fmt: Format, first: bool) -> Tensor:
    return x * 1000.0


SPREAD: dict[str, Fill] = {
    "normal": _normal,
    "uniform": _uniform,
    "large_mean": _large_mean,
    "far_mean": _far_mean,
    "extreme_logits": _extreme_logits,
    "zeros": _zeros,
    "signed_zeros": _signed_zeros,
    "small_integers": _small_integers,
    "cancelling": _cancelling,
    "halfway": _halfway,
    "half_steps": _half_steps,
    "half_steps_fp8": _half_steps_fp8,
    "near_overflow": _near_overflow,
    "subnormal": _subnormal,
    "saturating": _saturating,
}
