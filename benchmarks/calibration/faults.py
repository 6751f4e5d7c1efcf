"""Mistakes planted into the answer of a right kernel: functions of the tensors, on batches `[seeds, ...]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from opcheck.core.floats import ulp, upcast_exact
from opcheck.core.formats import format_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One mistake.

    Attributes:
        make: From target and golden, both `[seeds, *S]`, to the faulty target, or None where it does not apply.
        gradients: Whether it is planted into gradients too.
        families: Families of values it needs; empty for any.
        narrow: Whether it exists for narrow element types only.
    """

    make: Callable[[Tensor, Tensor], Tensor | None]
    gradients: bool = False
    families: tuple[str, ...] = ()
    narrow: bool = False


def _zeroed_row(target: Tensor, golden: Tensor) -> Tensor | None:
    """Zero the row of each sample that has the smallest maximum: never the outlier."""
    if target.dim() < 3 or target.shape[1] < 2:
        return None
    rows = golden.abs().nan_to_num().amax(dim=tuple(range(2, golden.dim())))
    found = target.clone()
    found[torch.arange(found.shape[0]), rows.argmin(-1)] = 0
    return found


def _one_wrong_element(target: Tensor, golden: Tensor) -> Tensor:
    flat = target.flatten(1).clone()
    at = (7919 * torch.arange(flat.shape[0]) + flat.shape[1] // 2) % flat.shape[1]
    rows = torch.arange(flat.shape[0])
    flat[rows, at] = (2 * flat[rows, at].double() + 1).to(flat.dtype)
    return flat.view(target.shape)


def _last_column(target: Tensor, golden: Tensor) -> Tensor:
    found = target.double()
    found[..., -1] *= 1.02
    return found.to(target.dtype)


def _scaled(target: Tensor, golden: Tensor) -> Tensor:
    return (target.double() * 1.01).to(target.dtype)


def _truncated(target: Tensor, golden: Tensor) -> Tensor:
    step = ulp(golden, format_of(target.dtype))
    kept = torch.where(golden.isfinite(), (golden.abs() / step).floor() * step * golden.sign(), golden)
    return kept.to(target.dtype)


def _some_zeroed(target: Tensor, golden: Tensor) -> Tensor | None:
    """Zero one element in 200."""
    size = target[0].numel()
    if size < 200:
        return None
    found = target.flatten(1).clone()
    found[:, 100::200] = 0
    return found.view(target.shape)


PLANTED = {
    "zeroed row beside an outlier": Planted(make=_zeroed_row, gradients=True, families=("outlier_row",)),
    "one wrong element": Planted(make=_one_wrong_element, gradients=True),
    "last column x1.02": Planted(make=_last_column),
    "1 % scale": Planted(make=_scaled, gradients=True),
    "truncation": Planted(make=_truncated, narrow=True),
    "0.5 % zeroed": Planted(make=_some_zeroed, gradients=True),
}


def farthest(faulty: Tensor, right: Tensor) -> float:
    """Return how far two tensors are apart, in their unit; Inf where one has a NaN or Inf that the other has not."""
    a, b = upcast_exact(faulty), upcast_exact(right)
    change = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a - b).abs())
    return float(change.nan_to_num(nan=torch.inf).max())
