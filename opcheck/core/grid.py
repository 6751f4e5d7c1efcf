"""The grid of a quantization, integers or 8-bit floats: is each number the one nearest to the unrounded value?"""

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
class OnGrid:
    """What the grid asks for, float64 `[n]`: `values`, and how far from them a number of it may be.

    Inf is `allowed` where nothing is asked. `tied` are the elements of which the reference says where they go, and
    `clipped` is golden, cut off where the grid ends.
    """

    values: Tensor
    allowed: Tensor
    tied: Tensor
    clipped: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Misrounded:
    """Elements `[n]` that are not what the grid asks for, and those of them that took the other side of a tie."""

    wrong: Tensor
    tied: Tensor


def has_grid(dtype: torch.dtype) -> bool:
    """Say whether a quantization to this element type is judged on its grid: integers and 8-bit floats."""
    fmt = FORMATS.get(str(dtype).removeprefix("torch."))
    return fmt.bits == 8 if fmt is not None else not (dtype.is_complex or dtype == torch.bool)


def on_grid(f: Tensor, g: Tensor, dtype: torch.dtype, *, overflow: Overflow, steady: Tensor | None = None) -> OnGrid:
    """Say what is asked of a quantization: the number of the grid nearest to golden.

    The law is `|t - clip(g)| <= |nearest(clip(g)) - clip(g)| + 2 NOISE |clip(g)|`, which on integers is
    `|t - clip(g)| <= 0.5 + NOISE |clip(g)|`: within the noise of a midpoint either neighbour is right. On a tie it is
    the one that the reference gives. Where golden is NaN an integer has no answer, and nothing is asked.

    Args:
        f: The reference, float64 `[n]`.
        g: The unrounded value in units of the grid, float64 `[n]`.
        dtype: The element type whose numbers are the grid.
        overflow: What becomes of values beyond it; integers saturate.
        steady: Golden with every inexact step off by a rounding of float32: where it has moved, what is a tie in
            float64 is none in float32, and either neighbour is right.
    """
    c, nearest = _clipped(g, dtype, overflow)
    r = nearest(c)
    asked = c.isfinite() & r.isfinite()
    other = 2.0 * c - r
    tied = asked & (other != r) & (nearest(other) == other) & ((f == r) | (f == other))
    if steady is not None:
        tied &= steady == g
    allowed = torch.where(tied, 0.0, (r - c).abs() + 2.0 * NOISE * c.abs())
    return OnGrid(
        values=torch.where(tied, f, c), allowed=torch.where(asked, allowed, torch.inf), tied=tied, clipped=c
    )  # fmt: skip


def misrounded(t: Tensor, f: Tensor, grid: OnGrid) -> Misrounded:
    """Say which elements of a target, float64 `[n]`, are not what its grid asks for; `f` is the reference."""
    wrong = grid.allowed.isfinite() & ~((t - grid.values).abs() <= grid.allowed)
    return Misrounded(wrong=wrong, tied=wrong & grid.tied & ((t - grid.clipped).abs() == (f - grid.clipped).abs()))


def _clipped(g: Tensor, dtype: torch.dtype, overflow: Overflow) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return golden cut off where the grid ends, and the rounding to the grid."""
    if not dtype.is_floating_point:
        ends = torch.iinfo(dtype)
        return g.clamp(float(ends.min), float(ends.max)), torch.round
    fmt = format_of(dtype)
    clipped = g.clamp(-fmt.max, fmt.max) if overflow == "saturate" else g
    return clipped, lambda value: round_to(value, fmt)
