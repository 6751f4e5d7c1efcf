"""The grid of a quantization, integers or 8-bit floats: is each number the nearest to the unrounded value?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from opcheck.core.floats import round_to
from opcheck.core.formats import FORMATS, format_of
from opcheck.core.policy import Overflow

# Of |golden|: four roundings of float32, in which scale and quotient are computed, may take a number past a midpoint.
NOISE = 4.0 * 2.0**-24


@dataclass(frozen=True, slots=True, kw_only=True)
class Misrounded:
    """Elements `[n]` that are not what the grid asks for, and those of them whose golden is a tie."""

    wrong: Tensor
    tied: Tensor


def has_grid(dtype: torch.dtype) -> bool:
    """Say whether a quantization to this element type is judged on its grid: integers and 8-bit floats."""
    fmt = FORMATS.get(str(dtype).removeprefix("torch."))
    return fmt.bits == 8 if fmt is not None else not (dtype.is_complex or dtype == torch.bool)


def misrounded(
    t: Tensor, f: Tensor, g: Tensor, dtype: torch.dtype, *, overflow: Overflow, steady: Tensor | None = None
) -> Misrounded:
    """Say which elements of the target are not the number of the grid nearest to golden.

    The law is `|t - clip(g)| <= |nearest(clip(g)) - clip(g)| + 2 NOISE |clip(g)|`, which on integers is
    `|t - clip(g)| <= 0.5 + NOISE |clip(g)|`: within the noise of a midpoint either neighbour is right. On a tie it is
    the one that the reference gives. Where golden is NaN an integer has no answer, and whatever has none is not wrong.

    Args:
        t, f: Target and reference, float64 `[n]`.
        g: The unrounded value in units of the grid, float64 `[n]`.
        dtype: The element type whose numbers are the grid.
        overflow: What becomes of values beyond it; integers saturate.
        steady: Golden with every inexact step off by a rounding of float32: where it has moved, what is a tie in
            float64 is none in float32, and either neighbour is right.
    """
    c, nearest = _clipped(g, dtype, overflow)
    r = nearest(c)
    asked = c.isfinite() & r.isfinite()
    distance = (r - c).abs()
    far = asked & ~((t - c).abs() <= distance + 2.0 * NOISE * c.abs())
    other = 2.0 * c - r
    tied = asked & (other != r) & (nearest(other) == other)
    settled = tied & ((f == r) | (f == other))
    if steady is not None:
        settled &= steady == g
    return Misrounded(wrong=far | (settled & (t != f)), tied=tied & ~far & (t != f) & settled)


def _clipped(g: Tensor, dtype: torch.dtype, overflow: Overflow) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return golden cut off where the grid ends, and the rounding to the grid."""
    if not dtype.is_floating_point:
        ends = torch.iinfo(dtype)
        return g.clamp(float(ends.min), float(ends.max)), torch.round
    fmt = format_of(dtype)
    clipped = g.clamp(-fmt.max, fmt.max) if overflow == "saturate" else g
    return clipped, lambda value: round_to(value, fmt)
