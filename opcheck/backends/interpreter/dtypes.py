"""Round as a GPU does: NumPy dtypes for bf16 and fp8, and conversions that round once.

`ml_dtypes` gives NumPy the narrow types and their arithmetic. Two of its habits differ from an NVIDIA GPU and are put
right here: FP64 reaches bf16 and fp8 through FP32, so it rounds twice, and fp8 overflows to NaN or Inf.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT8_E4M3FN = np.dtype(ml_dtypes.float8_e4m3fn)
FLOAT8_E5M2 = np.dtype(ml_dtypes.float8_e5m2)

#: The types that NumPy itself lacks.
CUSTOM: frozenset[np.dtype[Any]] = frozenset({BFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2})
#: Largest finite value of the types that saturate: PTX offers `cvt` to fp8 with `.satfinite` only, Inf included.
SATURATES = {FLOAT8_E4M3FN: 448.0, FLOAT8_E5M2: 57344.0}

_FLOAT16 = np.dtype(np.float16)
_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)
FLOATS: frozenset[np.dtype[Any]] = CUSTOM | {_FLOAT16, _FLOAT32, _FLOAT64}
_UNSIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


def bits(values: Array) -> Array:
    """View `values` as unsigned integers of the same width."""
    return values.view(_UNSIGNED[values.dtype.itemsize])


def storage(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype under which C code that knows NumPy's own types may carry `dtype`."""
    return _UNSIGNED[dtype.itemsize] if dtype in CUSTOM else dtype


def round_to_odd(values: Array) -> Array:
    """Narrow FP64 to FP32 so that a second rounding, to 22 bits or fewer, is as good as a single one.

    An inexact result gets an odd last bit (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008):
    it can then be neither a tie nor on the wrong side of one.
    """
    nearest = np.atleast_1d(values).astype(np.float32)
    exact = nearest.astype(np.float64)
    pattern = nearest.view(np.uint32)
    pattern -= np.abs(exact) > np.abs(values)
    pattern |= exact != values
    return nearest.reshape(np.shape(values))


def convert(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert `values` to `dtype` with one rounding to nearest even; fp8 saturates, NaN stays NaN.

    Subnormals are kept. Integers convert as NumPy does, which is the same except beyond the target's range.
    """
    source = values.dtype
    if source == dtype:
        return values
    if source == _FLOAT64 and dtype in CUSTOM:
        values = round_to_odd(values)
    if (limit := SATURATES.get(dtype)) is not None:
        values = np.clip(values.astype(np.float32, copy=False), -limit, limit)
    if dtype.kind in "iu" and source in FLOATS:
        return _to_integer(values, dtype)
    return values.astype(dtype)


def truncate(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert `values` to a narrower float `dtype`, rounding toward zero."""
    nearest = np.array(convert(values, dtype), ndmin=1)
    pattern = bits(nearest)
    pattern -= np.abs(nearest.astype(np.float64)) > np.abs(np.atleast_1d(values).astype(np.float64))
    return nearest.reshape(values.shape)


def to_tf32(values: Array) -> Array:
    """Drop the 13 low mantissa bits of FP32: a Hopper tensor core reads the operands of a tf32 product so."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _to_integer(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert floats toward zero; PTX `cvt.rzi` to 32 and 64 bits saturates and gives 0 for NaN."""
    if dtype.itemsize < 4:
        return values.astype(np.int32).astype(dtype)
    info = np.iinfo(dtype)
    wide = np.trunc(values.astype(np.float64))
    converted = wide.astype(dtype)
    converted = np.where(wide >= float(info.max), dtype.type(info.max), converted)
    converted = np.where(wide <= float(info.min), dtype.type(info.min), converted)
    return np.where(np.isnan(wide), dtype.type(0), converted)
