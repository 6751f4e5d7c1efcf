"""Fill a tensor with a family of values; `opcheck.core.families` says which bug each is for."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Fill = Callable[[Tensor, str], Tensor]


def fill(family: str, normal: Tensor, dtype: str) -> Tensor:
    """Turn standard normals `[*S]` in float32 into the family's values, still in float32.

    Raises:
        KeyError: There is no such family.
    """
    return _FILLS[family](normal, dtype)


def _normal(x: Tensor, dtype: str) -> Tensor:
    return x


def _large_mean(x: Tensor, dtype: str) -> Tensor:
    return x + 4.0


def _extreme_logits(x: Tensor, dtype: str) -> Tensor:
    return x * (60.0 if dtype in ("float16", "float8_e5m2", "float8_e4m3fn") else 300.0)


def _zeros(x: Tensor, dtype: str) -> Tensor:
    return torch.zeros_like(x)


def _masked(x: Tensor, dtype: str) -> Tensor:
    """A whole row of -inf, then rows whose first half is -inf; the last row is left alone."""
    if x.dim() == 0 or x.numel() < 2:
        return x
    rows = x.clone().reshape(-1, x.shape[-1])
    half = (rows.shape[1] + 1) // 2
    rows[1:-1, :half] = -torch.inf
    if rows.shape[0] > 1:
        rows[0] = -torch.inf
    return rows.reshape(x.shape)


def _one(value: float) -> Fill:
    def put(x: Tensor, dtype: str) -> Tensor:
        out = x.clone().reshape(-1)
        if out.numel():
            out[(2 * out.numel()) // 3] = value
        return out.reshape(x.shape)

    return put


_FILLS: dict[str, Fill] = {
    "normal": _normal,
    "large_mean": _large_mean,
    "extreme_logits": _extreme_logits,
    "zeros": _zeros,
    "masked": _masked,
    "one_inf": _one(torch.inf),
    "one_nan": _one(torch.nan),
}

# Families with single odd elements or rows touch only the first tensor drawn: the others stay ordinary, so that the
# answer is not NaN all over.
FIRST_ONLY: frozenset[str] = frozenset({"masked", "one_inf", "one_nan"})
