"""Activations by several formulas, and casts to 8 bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.calibration.kernel import Forward, Kernel, Op, Tensors, differentiable, exp_by_exp2, rounded

SHAPES = tuple(
    {"rows": rows, "cols": cols}
    for rows, cols in ((1, 1), (1, 7), (2, 32), (3, 129), (9, 129), (33, 32), (64, 129), (9, 1024), (64, 1024))
)
ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


def _exact_gelu(x: Tensor) -> Tensor:
    """Give gelu without the cancellation of `1 + erf`, which in FP64 too leaves nothing of the far tail."""
    return 0.5 * x * torch.special.erfc(-x / math.sqrt(2.0))


def _exact_gelu_tanh(x: Tensor) -> Tensor:
    """Give `0.5 x (1 + tanh u)` as `x sigmoid(2 u)`, which is the same."""
    return x * torch.sigmoid(2.0 * ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x))


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.erf(x * (1.0 / math.sqrt(2.0))))


def _gelu_tanh(x: Tensor, tanh: Callable[[Tensor], Tensor] = torch.tanh) -> Tensor:
    return 0.5 * x * (1.0 + tanh(ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x)))


def _tanh_by_exp(x: Tensor) -> Tensor:
    return 1.0 - 2.0 / (exp_by_exp2((2.0 * x).clamp_max(80.0)) + 1.0)


def _tanh_by_sigmoid(x: Tensor) -> Tensor:
    return 2.0 * torch.sigmoid(2.0 * x) - 1.0


def _silu_by_hand(inputs: Tensors, dy: Tensor) -> Tensors:
    """Give silu by exp2 and its gradient as `dy s (1 + x (1 - s))`, `s` the sigmoid."""
    x, g = inputs["x"].float(), dy.float()
    s = 1.0 / (1.0 + exp_by_exp2(-x))
    return {"out": (x * s).to(dy.dtype), "grad x": (g * s * (1.0 + x * (1.0 - s))).to(dy.dtype)}


def _swiglu_by_hand(inputs: Tensors, dy: Tensor) -> Tensors:
    gate, value, g = inputs["gate"].float(), inputs["value"].float(), dy.float()
    s = 1.0 / (1.0 + exp_by_exp2(-gate))
    found = {
        "out": gate * s * value,
        "grad gate": g * value * s * (1.0 + gate * (1.0 - s)),
        "grad value": g * gate * s,
    }
    return {name: item.to(dy.dtype) for name, item in found.items()}


def _sigmoid_by_tanh(x: Tensor) -> Tensor:
    return 0.5 + 0.5 * torch.tanh(0.5 * x)


def _softplus(x: Tensor) -> Tensor:
    return torch.clamp_min(x, 0.0) + torch.log1p(torch.exp(-x.abs()))


def _softplus_by_log2(x: Tensor) -> Tensor:
    return torch.clamp_min(x, 0.0) + torch.log2(1.0 + exp_by_exp2(-x.abs())) * 0.6931471805599453


def _activation(
    name: str,
    golden: Forward,
    plain: Forward,
    aten: Forward,
    targets: Mapping[str, Forward],
    faults: Mapping[str, Forward],
    borderline: Mapping[str, Forward] | None = None,
    *,
    by_hand: Mapping[str, Kernel] | None = None,
) -> Op:
    return Op(
        name=name,
        kind="elementwise",
        inputs={"x": ("rows", "cols")},
        golden=golden,
        references={"aten": differentiable(aten), "upcast": rounded(aten), "in dtype": differentiable(plain)},
        targets={
            "aten": differentiable(aten),
            **{key: rounded(forward) for key, forward in targets.items()},
            **(by_hand or {}),
        },
        borderline={key: rounded(forward) for key, forward in (borderline or {}).items()},
        faults={key: rounded(forward) for key, forward in faults.items()},
        shapes=SHAPES,
        families=("normal", "large_mean", "outlier_row", "outlier_column"),
    )


def _half_gradient(forward: Forward) -> Kernel:
    def run(inputs: Tensors, dy: Tensor) -> Tensors:
        found = rounded(forward)(inputs, dy)
        return {name: value / 2 if name.startswith("grad") else value for name, value in found.items()}

    return run


GELU = _activation("gelu", _exact_gelu, _gelu, functional.gelu, {"formula": _gelu}, {"tanh for erf": _gelu_tanh})
GELU_TANH = _activation(
    "gelu_tanh",
    _exact_gelu_tanh,
    _gelu_tanh,
    lambda x: functional.gelu(x, approximate="tanh"),
    {
        "formula": _gelu_tanh,
        "tanh by exp": lambda x: _gelu_tanh(x, _tanh_by_exp),
    },
    {"erf for tanh": _gelu},
    {"tanh by sigmoid": lambda x: _gelu_tanh(x, _tanh_by_sigmoid)},
)
SILU = _activation(
    "silu",
    lambda x: x * torch.sigmoid(x),
    lambda x: x * torch.sigmoid(x),
    functional.silu,
    {"formula": lambda x: x * torch.sigmoid(x)},
    {"slope 1.002": lambda x: x * torch.sigmoid(1.002 * x)},
    {"sigmoid by tanh": lambda x: x * _sigmoid_by_tanh(x)},
    by_hand={"exp2": _silu_by_hand},
)
SOFTPLUS = _activation(
    "softplus",
    lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    _softplus,
    functional.softplus,
    {"log1p": _softplus},
    {"relu beyond 4": lambda x: torch.where(x > 4.0, x, _softplus(x))},
    {"log2(1 + e)": _softplus_by_log2},
)
SWIGLU = Op(
    name="swiglu",
    kind="elementwise",
    inputs={"gate": ("rows", "cols"), "value": ("rows", "cols")},
    golden=lambda gate, value: gate * torch.sigmoid(gate) * value,
    references={
        "in dtype": differentiable(lambda gate, value: functional.silu(gate) * value),
        "upcast": rounded(lambda gate, value: functional.silu(gate) * value),
    },
    targets={
        "formula": rounded(lambda gate, value: gate * torch.sigmoid(gate) * value),
        "exp2": _swiglu_by_hand,
        "round between": differentiable(lambda gate, value: functional.silu(gate.float()).to(gate.dtype) * value),
    },
    coarse={"round between": frozenset({"in dtype"})},
    faults={"half gradient": _half_gradient(lambda gate, value: functional.silu(gate) * value)},
    shapes=SHAPES,
)


def _cast(dtype: str) -> Op:
    kept = getattr(torch, dtype)
    largest = torch.finfo(kept).max

    def direct(x: Tensor) -> Tensor:
        return x.detach().clamp(-largest, largest).to(kept)

    def by_half(x: Tensor) -> Tensor:
        return x.detach().clamp(-largest, largest).half().to(kept)

    return Op(
        name=f"cast {dtype}",
        kind="elementwise",
        inputs={"x": ("rows", "cols")},
        golden=lambda x: x.detach(),
        references={"direct": differentiable(direct)},
        targets={"over float16": differentiable(by_half)},
        shapes=SHAPES,
        families=("normal", "large_mean", "extreme_logits"),
        dtypes=("float32",),
        overflow="saturate",
        cast=dtype,
    )


CASTS = (_cast("float8_e4m3fn"), _cast("float8_e5m2"))
