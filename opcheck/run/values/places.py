"""Families in which a row, a column or an element differs from the others; rows run along the last dimension."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from opcheck.core.formats import Format
from opcheck.run.values.spread import Fill, uniform_of

OUTLIER = 1000.0
HEAVY = 8.0  # exp of it outweighs 128 elements near 0 twenty times
LIGHT = 1e-3
SPREAD_OF_CONSTANT = 2.0**-8
MASK = 1e10  # its square, summed over a row, is finite in float32


def _by_rows(change: Callable[[Tensor, Format], None]) -> Fill:
    """Make a family of what changes a tensor `[rows, cols]`, both at least 1, in place."""

    def place(x: Tensor, fmt: Format, first: bool) -> Tensor:
        out = x.clone()
        cols = x.shape[-1] if x.dim() else 1
        change(out.view(-1, cols), fmt)
        return out

    return place


def _mask(rows: Tensor, low: Tensor) -> None:
    """Put `low` into the whole first row, the first half of those between, and the last element of the last row."""
    count, cols = rows.shape
    half = (cols + 1) // 2
    if count > 1:
        rows[0] = low[0]
        rows[1:-1, :half] = low[1:-1, :half]
    if rows.numel() > 1:
        rows[-1, -1] = low[-1, -1]


def _masked(rows: Tensor, fmt: Format) -> None:
    _mask(rows, torch.full_like(rows, -torch.inf))


def _masked_finite(rows: Tensor, fmt: Format) -> None:
    """Spread over a binade: a row that is one large number has no variance that float32 can tell from rounding."""
    _mask(rows, -min(MASK, fmt.max) * (0.5 + 0.5 * uniform_of(rows)))


def _constant_rows(rows: Tensor, fmt: Format) -> None:
    rows.copy_(rows[:, :1].expand_as(rows).clone())


def _near_constant(rows: Tensor, fmt: Format) -> None:
    """Keep the spread at eight units in the last place: of what is just constant the rounding alone would be left."""
    first = rows[:, :1]
    centre = torch.copysign(1.0 + first.abs(), first)
    rows.copy_(centre + rows * max(SPREAD_OF_CONSTANT, math.ldexp(1.0, 3 - fmt.precision)))


def _outlier_row(rows: Tensor, fmt: Format) -> None:
    rows[2 * rows.shape[0] // 3] *= min(OUTLIER, fmt.max / 16)


def _outlier_column(rows: Tensor, fmt: Format) -> None:
    rows[:, 2 * rows.shape[1] // 3] *= min(OUTLIER, fmt.max / 16)


def _tail(rows: Tensor, fmt: Format) -> None:
    _weigh(rows, 1)


def _tail_block(rows: Tensor, fmt: Format) -> None:
    _weigh(rows, math.ceil(rows.shape[1] / 8))


def _weigh(rows: Tensor, last: int) -> None:
    rows[:, :-last] *= LIGHT
    rows[:, -last:] = HEAVY + rows[:, -last:].abs()


def _one_hot(rows: Tensor, fmt: Format) -> None:
    count, cols = rows.shape
    at = torch.arange(count, device=rows.device)
    rows.zero_()
    rows[at, (cols - 1 - at * max(1, cols // count)) % cols] = 1.0


def _one(value: float) -> Fill:
    def put(rows: Tensor, fmt: Format) -> None:
        flat = rows.view(-1)
        flat[(2 * flat.numel()) // 3] = value

    return _by_rows(put)


PLACES: dict[str, Fill] = {
    "masked": _by_rows(_masked),
    "masked_finite": _by_rows(_masked_finite),
    "near_constant": _by_rows(_near_constant),
    "constant_rows": _by_rows(_constant_rows),
    "outlier_row": _by_rows(_outlier_row),
    "outlier_column": _by_rows(_outlier_column),
    "tail": _by_rows(_tail),
    "tail_block": _by_rows(_tail_block),
    "one_hot": _by_rows(_one_hot),
    "one_inf": _one(torch.inf),
    "one_negative_inf": _one(-torch.inf),
    "one_nan": _one(torch.nan),
}
