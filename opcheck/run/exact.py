"""Evaluate golden of an elementwise op with many digits: its torch operations, carried out on scalars by mpmath."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from mpmath import mp

DIGITS = 120  # 1 + x keeps x down to the smallest subnormal of float32, and its square


class NotCovered(AttributeError):
    """Golden uses an operation that has no entry in the table."""


class Exact:
    """A scalar of many digits, or a truth value, that torch's functions take for a tensor of no dimensions."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _apply(func.__name__, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name in _PROPERTIES:
            return _PROPERTIES[name]
        if name not in _TABLE:
            raise NotCovered(name)
        return lambda *args, **kwargs: _apply(name, (self, *args), kwargs)

    def __bool__(self) -> bool:
        return bool(self.value)


def to_float(value: Any) -> float:
    """Return the nearest float of what a golden gave, NaN for what is no real number."""
    value = _plain(value)
    return float(value) if isinstance(value, mp.mpf | int | float) else math.nan


def _apply(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out one operation; an undefined or complex result is NaN."""
    function = _TABLE.get(name)
    if function is None:
        raise NotCovered(name)
    try:
        result = function(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})
    except (ZeroDivisionError, ValueError, OverflowError):
        result = mp.nan
    return Exact(mp.nan if isinstance(result, mp.mpc) else result)


def _plain(value: Any) -> Any:
    if isinstance(value, Exact):
        return value.value
    if isinstance(value, bool):
        return value
    return mp.mpf(value) if isinstance(value, int | float) else value


def _divide(x: Any, y: Any, *, rounding_mode: None = None) -> Any:
    if y != 0:
        return x / y
    return mp.nan if x == 0 or mp.isnan(x) else mp.inf * mp.sign(x)


def _sum(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x + alpha * y


def _difference(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x - alpha * y


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return x * _sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def _softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    return mp.log1p(mp.exp(beta * x)) / beta


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    low = x if min is None or x >= min else min
    return low if max is None or low <= max else max


def _larger(x: Any, y: Any) -> Any:
    return x if mp.isnan(x) or x >= y else y


def _smaller(x: Any, y: Any) -> Any:
    return x if mp.isnan(x) or x <= y else y


def _same(x: Any, *_: Any, **__: Any) -> Any:
    return x


_PROPERTIES: dict[str, Any] = {
    "shape": torch.Size(()), "dtype": torch.float64, "ndim": 0, "device": torch.device("cpu"), "requires_grad": False,
}  # fmt: skip

_IDENTITIES = (
    "to", "double", "float", "half", "bfloat16", "type", "type_as", "detach", "clone", "contiguous", "positive",
    "reshape", "view", "view_as", "expand", "expand_as", "unsqueeze", "squeeze", "requires_grad_",
)  # fmt: skip

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": _sum, "sub": _difference, "mul": operator.mul, "truediv": _divide, "pow": operator.pow,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": operator.and_, "or": operator.or_, "neg": operator.neg, "abs": abs, "invert": operator.not_,
}  # fmt: skip

_TABLE: dict[str, Callable[..., Any]] = {
    **_OPERATORS,
    **dict.fromkeys(_IDENTITIES, _same),
    "div": _divide, "divide": _divide, "true_divide": _divide, "multiply": operator.mul, "subtract": _difference,
    "rsub": lambda x, y: y - x, "negative": operator.neg, "absolute": abs, "logical_not": operator.not_,
    "logical_and": operator.and_, "logical_or": operator.or_, "bitwise_not": operator.not_,
    "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p,
    "log2": lambda x: mp.log(x, 2), "log10": mp.log10, "sqrt": mp.sqrt, "rsqrt": lambda x: _divide(1, mp.sqrt(x)),
    "erf": mp.erf, "erfc": mp.erfc, "special_erf": mp.erf, "special_erfc": mp.erfc, "special_expm1": mp.expm1,
    "special_log1p": mp.log1p, "tanh": mp.tanh, "sinh": mp.sinh, "cosh": mp.cosh, "sin": mp.sin, "cos": mp.cos,
    "tan": mp.tan, "atan": mp.atan, "sigmoid": _sigmoid, "special_expit": _sigmoid,
    "silu": lambda x, **_: x * _sigmoid(x), "gelu": _gelu, "softplus": _softplus,
    **dict.fromkeys(("logsigmoid", "log_sigmoid"), lambda x: -mp.log1p(mp.exp(-x))),
    "relu": lambda x, **_: _larger(x, mp.mpf(0)), "square": lambda x: x * x, "reciprocal": lambda x: _divide(1, x),
    "where": lambda condition, x, y: x if condition else y, "clamp": _clamp, "clip": _clamp,
    "clamp_min": lambda x, min: _clamp(x, min), "clamp_max": lambda x, max: _clamp(x, None, max),
    "maximum": _larger, "minimum": _smaller, "max": _larger, "min": _smaller, "sign": mp.sign,
    "addcmul": lambda x, y, z, value=1: x + value * y * z, "lerp": lambda x, y, weight: x + weight * (y - x),
    "zeros_like": lambda x, **_: mp.mpf(0), "ones_like": lambda x, **_: mp.mpf(1), "dim": lambda x: 0,
    "numel": lambda x: 1,
}  # fmt: skip

_REFLECTED = ("add", "sub", "mul", "truediv", "pow", "and", "or")


def _method(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Exact, *others: Any) -> Any:
        return _apply(name, (*others, self) if reflected else (self, *others), {})

    return method


for _name in _OPERATORS:
    setattr(Exact, f"__{_name}__", _method(_name))
for _name in _REFLECTED:
    setattr(Exact, f"__r{_name}__", _method(_name, reflected=True))
