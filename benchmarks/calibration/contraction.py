"""A linear layer: split and chunked reductions, transposed products, and accumulators that are too narrow."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.calibration.kernel import Kernel, Op, Tensors, differentiable, each, rounded


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return `x @ weight^T + bias`: `[s, m, k]`, `[s, n, k]`, `[s, n]` -> `[s, m, n]`."""
    return x @ weight.mT + bias[:, None]


def split(parts: int) -> Kernel:
    """Sum `parts` interleaved shares of the reduction, each on its own."""

    def forward(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        shares = [x[..., at::parts] @ weight[..., at::parts].mT for at in range(min(parts, x.shape[-1]))]
        return torch.stack(shares).sum(0) + bias[:, None]

    return rounded(forward)


def _chunks(x: Tensor, weight: Tensor, bias: Tensor, size: int) -> Tensor:
    total = bias[:, None].expand(-1, x.shape[1], -1)
    for start in range(0, x.shape[-1], size):
        total = total + x[..., start : start + size] @ weight[..., start : start + size].mT
    return total


def _transposed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (weight @ x.mT).mT + bias[:, None]


def _without(x: Tensor, weight: Tensor, bias: Tensor, count: int) -> Tensor:
    stop = max(x.shape[-1] - count, 0)
    return x[..., :stop] @ weight[..., :stop].mT + bias[:, None]


def _weight_without_last_row(inputs: Tensors, dy: Tensor) -> Tensors:
    found = rounded(linear)(inputs, dy)
    x, g = inputs["x"][:, :-1].float(), dy[:, :-1].float()
    return {**found, "grad weight": (g.mT @ x).to(dy.dtype), "grad bias": g.sum(1).to(dy.dtype)}


LINEAR = Op(
    name="linear",
    kind="contraction",
    inputs={"x": ("m", "k"), "weight": ("n", "k"), "bias": ("n",)},
    golden=linear,
    references={"aten": each(functional.linear), "upcast": rounded(linear), "in dtype": differentiable(linear)},
    targets={
        "aten": each(functional.linear),
        "transposed": rounded(_transposed),
        "split 2": split(2),
        "split 4": split(4),
        "split 8": split(8),
        "chunks of 32": rounded(lambda *at: _chunks(*at, size=32)),
    },
    faults={
        "accumulator": differentiable(lambda *at: _chunks(*at, size=8)),
        "dropped last": rounded(lambda *at: _without(*at, count=1)),
        "dropped last 8": rounded(lambda *at: _without(*at, count=8)),
        "last row missing in weight grad": _weight_without_last_row,
    },
    shapes=tuple(
        {"m": m, "n": n, "k": k}
        for m, n, k in (
            (1, 1, 1), (1, 7, 32), (2, 5, 129), (3, 33, 129), (9, 32, 32), (9, 33, 1024), (33, 64, 129), (64, 64, 1024),
        )
    ),
)  # fmt: skip
