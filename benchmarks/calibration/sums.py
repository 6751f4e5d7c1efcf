"""Legitimate orders of a sum over the last axis, and sums that are wrong."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.calibration.kernel import Op, Tensors, differentiable, padded, rounded

ROWS = tuple(
    {"rows": rows, "cols": cols}
    for rows, cols in (
        (1, 1), (1, 7), (1, 129), (2, 32), (3, 129), (5, 7), (9, 129), (9, 1024), (33, 32), (64, 1), (64, 129),
        (64, 1024), (3, 4096),
    )
)  # fmt: skip


def plain(x: Tensor) -> Tensor:
    """Sum `[..., n]` to `[...]` in aten's order."""
    return x.sum(-1)


def blocks(x: Tensor, size: int = 128) -> Tensor:
    """Sum blocks of `size` in aten's order, then the blocks one after the other."""
    total = torch.zeros_like(x[..., 0])
    for part in padded(x, size).unbind(-2):
        total = total + part.sum(-1)
    return total


def backwards(x: Tensor) -> Tensor:
    """Sum blocks from the last to the first."""
    return blocks(x.flip(-1), 32)


def pairwise(x: Tensor) -> Tensor:
    """Sum by halving."""
    while x.shape[-1] > 1:
        x = padded(x, 2).sum(-1)
    return x[..., 0]


def lanes(x: Tensor) -> Tensor:
    """Sum in 32 strided lanes, each one after the other, then the lanes by halving: a warp's order."""
    total = torch.zeros_like(padded(x, 32)[..., 0, :])
    for part in padded(x, 32).unbind(-2):
        total = total + part
    return pairwise(total)


def sequential(x: Tensor) -> Tensor:
    """Sum the elements one after the other: one thread for a row."""
    total = torch.zeros_like(x[..., 0])
    for part in x.unbind(-1):
        total = total + part
    return total


def narrow(x: Tensor) -> Tensor:
    """Sum with an accumulator of the element type itself: lanes of 32, rounded after every addition."""
    return lanes(x)


def without_last(x: Tensor, count: int) -> Tensor:
    """Sum all but the last `count` elements: a loop that ends early."""
    return x[..., : max(x.shape[-1] - count, 0)].sum(-1)


ORDERS = {"blocks": blocks, "backwards": backwards, "pairwise": pairwise, "lanes": lanes}


def _half_gradient(inputs: Tensors, dy: Tensor) -> Tensors:
    found = rounded(plain)(inputs, dy)
    return {name: value / 2 if name.startswith("grad") else value for name, value in found.items()}


SUM = Op(
    name="sum",
    kind="reduction",
    inputs={"x": ("rows", "cols")},
    golden=plain,
    references={"aten": differentiable(plain), "upcast": rounded(plain)},
    targets={name: rounded(order) for name, order in {"plain": plain, **ORDERS}.items()},
    borderline={"sequential": rounded(sequential)},
    faults={
        "accumulator": differentiable(narrow),
        "dropped last": rounded(lambda x: without_last(x, 1)),
        "dropped last 8": rounded(lambda x: without_last(x, 8)),
        "half gradient": _half_gradient,
    },
    shapes=ROWS,
)
MEAN = Op(
    name="mean",
    kind="reduction",
    inputs={"x": ("rows", "cols")},
    golden=lambda x: x.mean(-1),
    references={"aten": differentiable(lambda x: x.mean(-1)), "upcast": rounded(lambda x: x.mean(-1))},
    targets={
        name: rounded(lambda x, order=order: order(x) / x.shape[-1])
        for name, order in {"plain": plain, **ORDERS}.items()
    },
    faults={
        "accumulator": differentiable(lambda x: narrow(x) / x.shape[-1]),
        "dropped last": rounded(lambda x: without_last(x, 1) / x.shape[-1]),
    },
    shapes=ROWS,
)
