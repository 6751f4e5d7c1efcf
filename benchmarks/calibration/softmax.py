"""Softmax and cross entropy: orders, exponentials and backward formulas that are right, and some that are not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.calibration.kernel import Kernel, Op, Tensors, differentiable, exp_by_exp2, padded, rounded
from benchmarks.calibration.sums import ROWS, blocks, lanes, narrow, pairwise, plain, without_last

Sum = Callable[[Tensor], Tensor]
FAMILIES = ("normal", "large_mean", "extreme_logits", "outlier_row", "outlier_column")


def softmax(x: Tensor, *, total: Sum = plain, exp: Sum = torch.exp) -> Tensor:
    """Return the softmax over the last axis of `[..., n]`, the maximum subtracted."""
    e = exp(x - x.amax(-1, keepdim=True).detach())
    return e / total(e)[..., None]


def online(x: Tensor, size: int = 32) -> Tensor:
    """Return the softmax with a running maximum and a running sum over blocks of `size`."""
    peak = torch.full_like(x[..., 0], -torch.inf).detach()
    total = torch.zeros_like(x[..., 0])
    for part in padded(x, size, -torch.inf).unbind(-2):
        higher = torch.maximum(peak, part.amax(-1).detach())
        total = total * exp_by_exp2(peak - higher) + exp_by_exp2(part - higher[..., None]).sum(-1)
        peak = higher
    return exp_by_exp2(x - peak[..., None]) / total[..., None]


def by_hand(*, saved: bool, total: Sum = plain, keep: bool = True, factor: float = 1.0) -> Kernel:
    """Return a kernel with the backward written out, `y (dy - sum(y dy))`.

    `saved` takes y rounded, as it was stored; `keep=False` forgets the row sum.
    """

    def run(inputs: Tensors, dy: Tensor) -> Tensors:
        x = inputs["x"]
        y = softmax(x.float(), exp=exp_by_exp2, total=total)
        out = y.to(x.dtype)
        y = out.float() if saved else y
        g = dy.float()
        row = total(y * g)[..., None] if keep else 0.0
        return {"out": out, "grad x": (factor * y * (g - row)).to(x.dtype)}

    return run


def log_sum_exp(x: Tensor, *, total: Sum = plain, exp: Sum = torch.exp) -> Tensor:
    """Return `log sum exp` minus the first logit, the cross entropy `[...]` of class 0."""
    peak = x.amax(-1, keepdim=True).detach()
    return torch.log(total(exp(x - peak))) + (peak - x[..., :1])[..., 0]


def _entropy_by_hand(inputs: Tensors, dy: Tensor) -> Tensors:
    """Give the loss by exp2 and log2, and the gradient as `dy (p - onehot)`."""
    x = inputs["x"].float()
    peak = x.amax(-1, keepdim=True)
    e = exp_by_exp2(x - peak)
    total = pairwise(e)
    loss = torch.log2(total) * 0.6931471805599453 + (peak - x[..., :1])[..., 0]
    p = e / total[..., None]
    p[..., 0] -= 1.0
    return {"out": loss.to(dy.dtype), "grad x": (p * dy.float()[..., None]).to(dy.dtype)}


def _entropy_loss(x: Tensor) -> Tensor:
    classes = torch.zeros(x.shape[:-1].numel(), dtype=torch.int64, device=x.device)
    flat = torch.nn.functional.cross_entropy(x.flatten(0, -2), classes, reduction="none")
    return flat.view(x.shape[:-1])


SOFTMAX = Op(
    name="softmax",
    kind="normalization",
    inputs={"x": ("rows", "cols")},
    golden=lambda x: torch.softmax(x, -1),
    references={
        "aten": differentiable(lambda x: torch.softmax(x, -1)),
        "upcast": rounded(lambda x: torch.softmax(x, -1)),
        "in dtype": differentiable(softmax),
    },
    targets={
        "aten": differentiable(lambda x: torch.softmax(x, -1)),
        "plain": rounded(softmax),
        "exp2": rounded(lambda x: softmax(x, exp=exp_by_exp2, total=lanes)),
        "online": rounded(online),
        "online 128": rounded(lambda x: online(x, 128)),
        "by hand": by_hand(saved=False, total=pairwise),
        "by hand, saved": by_hand(saved=True, total=blocks),
    },
    faults={
        "accumulator": differentiable(lambda x: softmax(x, total=narrow)),
        "dropped last": rounded(lambda x: softmax(x, total=lambda e: without_last(e, 1))),
        "dropped last 8": rounded(lambda x: softmax(x, total=lambda e: without_last(e, 8))),
        "no row sum in backward": by_hand(saved=False, keep=False),
        "half gradient": by_hand(saved=False, factor=0.5),
    },
    coarse={"aten": frozenset({"in dtype"}), "by hand, saved": frozenset({"aten", "in dtype"})},
    shapes=ROWS,
    families=FAMILIES,
)
CROSS_ENTROPY = Op(
    name="cross_entropy",
    kind="reduction",
    inputs={"x": ("rows", "cols")},
    golden=lambda x: log_sum_exp(x),
    references={
        "aten": differentiable(_entropy_loss),
        "upcast": rounded(_entropy_loss),
        "in dtype": differentiable(lambda x: -torch.log_softmax(x, -1)[..., 0]),
    },
    targets={
        "aten": rounded(_entropy_loss),
        "plain": rounded(log_sum_exp),
        "lanes": rounded(lambda x: log_sum_exp(x, total=lanes)),
        "exp2, log2": _entropy_by_hand,
    },
    borderline={"logsumexp": rounded(lambda x: torch.logsumexp(x, -1) - x[..., 0])},
    faults={
        "accumulator": differentiable(lambda x: log_sum_exp(x, total=narrow)),
        "dropped last": rounded(lambda x: log_sum_exp(x, total=lambda e: without_last(e, 1))),
    },
    shapes=ROWS,
    families=FAMILIES,
)
