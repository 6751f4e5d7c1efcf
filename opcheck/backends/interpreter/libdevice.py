"""Give CUDA's libdevice functions NumPy bodies.

Triton checks the argument types and picks the symbol (`__nv_tanhf`, `__nv_tanh`, ...); the body computes in FP64 and
rounds once, which is nearer to the exact value than the device's own 1 to 4 ulp. A symbol without a body raises.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from triton.runtime import interpreter

from opcheck.backends.interpreter.dtypes import Array, convert

Body = Callable[..., Array]


def _scalar(function: Callable[[float], float]) -> Body:
    return np.vectorize(function, otypes=[np.float64])


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):
        return math.inf


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    away: Array = whole + np.copysign(np.abs(x - whole) >= 0.5, x)
    return away


def _power_of_cube_root(x: Array) -> Array:
    return 1.0 / np.cbrt(x)


def _normal_cdf(x: Array) -> Array:
    half: Array = 0.5 * _erfc(-x / math.sqrt(2.0))
    return half


def _exp10(x: Array) -> Array:
    return np.power(10.0, x)


_erf, _erfc = _scalar(math.erf), _scalar(math.erfc)

#: Functions with an FP32 symbol `__nv_<name>f` and an FP64 symbol `__nv_<name>`.
_PAIRED: dict[str, Body] = {
    "abs": np.abs,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": _half_away,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "cbrt": np.cbrt,
    "rcbrt": _power_of_cube_root,
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": _exp10,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "erfc": _erfc,
    "normcdf": _normal_cdf,
    "tgamma": _scalar(_gamma),
    "lgamma": _scalar(_lgamma),
    "pow": np.power,
    "powi": np.power,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)),
    "copysign": np.copysign,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int64)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int64)),
}

#: Symbols outside that pattern. The device's `fast_` variants are less exact; a body has no reason to be.
_SINGLE: dict[str, Body] = {
    "__nv_saturatef": lambda x: np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0)),
    "__nv_fast_fdividef": np.divide,
    "__nv_fast_sinf": np.sin,
    "__nv_fast_cosf": np.cos,
    "__nv_fast_tanf": np.tan,
    "__nv_fast_expf": np.exp,
    "__nv_fast_exp10f": _exp10,
    "__nv_fast_logf": np.log,
    "__nv_fast_log2f": np.log2,
    "__nv_fast_log10f": np.log10,
    "__nv_fast_powf": np.power,
    "__nv_frsqrt_rn": lambda x: 1.0 / np.sqrt(x),
    "__nv_isnanf": np.isnan,
    "__nv_isnand": np.isnan,
    "__nv_isinff": np.isinf,
    "__nv_isinfd": np.isinf,
    "__nv_finitef": np.isfinite,
    "__nv_isfinited": np.isfinite,
    "__nv_signbitf": np.signbit,
    "__nv_signbitd": np.signbit,
    "__nv_llrintf": np.rint,
    "__nv_llrint": np.rint,
    "__nv_llroundf": _half_away,
    "__nv_llround": _half_away,
    "__nv_float2int_rn": np.rint,
    "__nv_float2int_rz": np.trunc,
    "__nv_float2int_rd": np.floor,
    "__nv_float2int_ru": np.ceil,
    "__nv_int2float_rn": lambda x: x,
}
_ROUNDED: dict[str, Body] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
}
_SINGLE |= {f"__nv_{prefix}{name}_rn": function for prefix in "fd" for name, function in _ROUNDED.items()}
_FUSED = frozenset({"__nv_fmaf", "__nv_fma", "__nv_fmaf_rn", "__nv_fma_rn"})
_REINTERPRETED = frozenset(
    {"__nv_float_as_int", "__nv_int_as_float", "__nv_float_as_uint", "__nv_uint_as_float"}
    | {"__nv_double_as_longlong", "__nv_longlong_as_double"}
)


def body(symbol: str) -> Body | None:
    """Return the FP64 body of a libdevice symbol, or None."""
    if symbol in _SINGLE:
        return _SINGLE[symbol]
    name = symbol.removeprefix("__nv_")
    return _PAIRED.get(name) or _PAIRED.get(name.removesuffix("f"))


def create_extern_elementwise(
    self: Any, lib_name: str, lib_path: str, symbol: str, arguments: list[Any], ret_type: Any, is_pure: bool
) -> Any:
    """Compute one libdevice symbol.

    Raises:
        NotImplementedError: The symbol has no body here.
    """
    dtype = interpreter._get_np_dtype(ret_type)
    if symbol in _FUSED:
        return self.create_fma(*arguments)
    if symbol in _REINTERPRETED:
        return interpreter.TensorHandle(arguments[0].data.view(dtype), ret_type.scalar)
    if (function := body(symbol)) is None:
        raise NotImplementedError(f"libdevice {symbol} has no body in the interpreter")
    value = np.asarray(function(*(argument.data.astype(np.float64) for argument in arguments)))
    return interpreter.TensorHandle(convert(value, dtype), ret_type.scalar)


def bind(function: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    """Call a function of `triton.language.extra.cuda.libdevice` with the interpreter's semantic."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{**kwargs, "_semantic": semantic})

    return call
