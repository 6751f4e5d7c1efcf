"""Layer and RMS normalization: ways to sum, to take the variance and to split the weight's gradient."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.calibration.kernel import Kernel, Op, Tensors, differentiable, each, padded, rounded
from benchmarks.calibration.sums import ROWS, backwards, blocks, lanes, narrow, pairwise, plain, without_last

Sum = Callable[[Tensor], Tensor]
EPS = 1e-5


def _mean(x: Tensor, total: Sum) -> Tensor:
    return total(x)[..., None] / x.shape[-1]


def _one_over_sqrt(x: Tensor) -> Tensor:
    return 1.0 / torch.sqrt(x)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, *, total: Sum = plain, root: Sum = torch.rsqrt) -> Tensor:
    """Normalize `[seeds, rows, cols]` over cols, two passes; weight and bias `[seeds, cols]`."""
    centred = x - _mean(x, total)
    return centred * root(_mean(centred * centred, total) + EPS) * weight[:, None] + bias[:, None]


def one_pass(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Take the variance as `mean(x^2) - mean(x)^2`."""
    mean = _mean(x, lanes)
    variance = (_mean(x * x, lanes) - mean * mean).clamp_min(0.0)
    return (x - mean) * torch.rsqrt(variance + EPS) * weight[:, None] + bias[:, None]


def welford(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Merge the means and squared deviations of blocks of 32 one after the other (Chan, Golub and LeVeque, 1983)."""
    count, mean, squares = 0, torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
    for start in range(0, x.shape[-1], 32):
        part = x[..., start : start + 32]
        n = part.shape[-1]
        own = part.mean(-1)
        delta = own - mean
        squares = squares + ((part - own[..., None]) ** 2).sum(-1) + delta * delta * (count * n / (count + n))
        mean = mean + delta * (n / (count + n))
        count += n
    rstd = torch.rsqrt(squares[..., None] / count + EPS)
    return (x - mean[..., None]) * rstd * weight[:, None] + bias[:, None]


def rms_norm(x: Tensor, weight: Tensor, *, total: Sum = plain, root: Sum = torch.rsqrt) -> Tensor:
    """Scale `[seeds, rows, cols]` by the root mean square over cols; weight `[seeds, cols]`."""
    return x * root(_mean(x * x, total) + EPS) * weight[:, None]


def _between(x: Tensor, weight: Tensor) -> Tensor:
    """Round the normalized value before the weight, as widespread model code does."""
    wide = x.float()
    return (wide * torch.rsqrt(_mean(wide * wide, plain) + EPS)).to(x.dtype) * weight[:, None]


def by_hand(*, groups: int = 4, centre: bool, keep: bool = True, rows: slice = slice(None)) -> Kernel:
    """Return a kernel with the backward written out, the weight's gradient summed over `groups` of rows first.

    `keep=False` forgets the terms that come from the statistics; `rows` leaves rows out of the weight's gradient.
    """

    def run(inputs: Tensors, dy: Tensor) -> Tensors:
        dtype = inputs["x"].dtype
        x, weight, g = inputs["x"].float(), inputs["weight"].float(), dy.float()
        centred = x - _mean(x, lanes) if centre else x
        rstd = torch.rsqrt(_mean(centred * centred, lanes) + EPS)
        unit, scaled = centred * rstd, g * weight[:, None]
        inner = scaled - unit * _mean(scaled * unit, lanes) if keep else scaled
        inner = inner - _mean(scaled, lanes) if keep and centre else inner
        out = unit * weight[:, None]
        split = padded((g * unit)[:, rows].movedim(1, -1), groups)
        found = {"grad x": rstd * inner, "grad weight": split.sum(-2).sum(-1)}
        if centre:
            out = out + inputs["bias"].float()[:, None]
            found["grad bias"] = padded(g[:, rows].movedim(1, -1), groups).sum(-2).sum(-1)
        return {"out": out.to(dtype), **{name: value.to(dtype) for name, value in found.items()}}

    return run


def _aten_layer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)


def _aten_rms(x: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, EPS)


LAYER_NORM = Op(
    name="layer_norm",
    kind="normalization",
    inputs={"x": ("rows", "cols"), "weight": ("cols",), "bias": ("cols",)},
    golden=layer_norm,
    references={"aten": each(_aten_layer), "upcast": rounded(layer_norm), "in dtype": differentiable(layer_norm)},
    targets={
        "aten": each(_aten_layer),
        "two-pass": rounded(lambda *at: layer_norm(*at, total=lanes)),
        "1/sqrt": rounded(lambda *at: layer_norm(*at, total=pairwise, root=_one_over_sqrt)),
        "welford": rounded(welford),
        "one-pass": rounded(one_pass),
        "by hand": by_hand(centre=True),
    },
    borderline={"one-pass": rounded(one_pass)},
    coarse={"aten": frozenset()},  # the CPU's sums the gradients of weight and bias in their own type
    zero_mean=frozenset({"one-pass"}),
    faults={
        "accumulator": differentiable(lambda *at: layer_norm(*at, total=narrow)),
        "dropped last": rounded(lambda *at: layer_norm(*at, total=lambda x: without_last(x, 1))),
        "dropped last 8": rounded(lambda *at: layer_norm(*at, total=lambda x: without_last(x, 8))),
        "no row sum in backward": by_hand(centre=True, keep=False),
        "last row missing in weight grad": by_hand(centre=True, rows=slice(0, -1)),
    },
    shapes=tuple(size for size in ROWS if size["cols"] > 1),
)
RMS_NORM = Op(
    name="rms_norm",
    kind="normalization",
    inputs={"x": ("rows", "cols"), "weight": ("cols",)},
    golden=rms_norm,
    references={"aten": each(_aten_rms), "upcast": rounded(rms_norm), "round between": differentiable(_between)},
    targets={
        "aten": each(_aten_rms),
        "blocks": rounded(lambda *at: rms_norm(*at, total=blocks)),
        "backwards": rounded(lambda *at: rms_norm(*at, total=backwards)),
        "1/sqrt": rounded(lambda *at: rms_norm(*at, total=lanes, root=_one_over_sqrt)),
        "by hand": by_hand(centre=False),
        "by hand, 16 groups": by_hand(centre=False, groups=16),
    },
    faults={
        "accumulator": differentiable(lambda *at: rms_norm(*at, total=narrow)),
        "dropped last": rounded(lambda *at: rms_norm(*at, total=lambda x: without_last(x, 1))),
        "no row sum in backward": by_hand(centre=False, keep=False),
        "last row missing in weight grad": by_hand(centre=False, rows=slice(0, -1)),
    },
    shapes=ROWS,
)
