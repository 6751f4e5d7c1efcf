"""Cast, multiply and accumulate as an H200 does: methods for the interpreter's builder.

Each function replaces the method of `InterpreterBuilder` that has its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime import interpreter

from opcheck.backends.interpreter.dtypes import (
    BFLOAT16,
    CUSTOM,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOATS,
    Array,
    convert,
    to_tf32,
    truncate,
)

#: How many products one tensor-core instruction sums before an fp16 accumulator is rounded (wgmma, k16).
_FP16_STEP = 16

#: Triton's names of the types that NumPy lacks. AMD's fp8 variants keep the interpreter's own treatment.
_DTYPES: dict[str, np.dtype[Any]] = {"bf16": BFLOAT16, "fp8e4nv": FLOAT8_E4M3FN, "fp8e5": FLOAT8_E5M2}
_POINTER = np.dtype(np.uint64)

_PLAIN_DTYPE = interpreter._get_np_dtype
_PLAIN_CAST = interpreter.InterpreterBuilder.create_fp_to_fp
_PLAIN_VALUE = interpreter._mxfp_value_handle_to_float32
_PLAIN_SCALE = interpreter._dot_scaled_scale_to_f32
_erf64 = np.vectorize(math.erf, otypes=[np.float64])


def np_dtype(tt_dtype: Any) -> np.dtype[Any]:
    """Return the NumPy dtype that holds a Triton type; pointers are uint64."""
    scalar = tt_dtype.scalar
    if scalar.is_ptr():
        return _POINTER
    dtype = _DTYPES.get(scalar.name)
    if dtype is None:
        dtype = _DTYPES[scalar.name] = _PLAIN_DTYPE(scalar)
    return dtype


def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
    """Convert between floats and integers, rounding floats once to nearest even."""
    return interpreter.TensorHandle(convert(src.data, interpreter._get_np_dtype(dst_type)), dst_type.scalar)


def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
    """Convert between floats with the rounding mode that the kernel asked for; fp8 saturates."""
    dtype = interpreter._get_np_dtype(dst_type)
    if src.data.dtype not in FLOATS or dtype not in FLOATS:
        return _PLAIN_CAST(self, src, dst_type, rounding_mode)
    narrow = truncate if rounding_mode == ir.ROUNDING_MODE.RTZ else convert
    return interpreter.TensorHandle(narrow(src.data, dtype), dst_type.scalar)


def create_dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
    """Multiply `[m, k]` by `[k, n]` and add `d`, with the operands' precision and the accumulator's.

    Products of bf16, fp16, fp8 and tf32 are exact in FP32; `tf32x3` and the bf16 splittings are as good as FP32.
    """
    left, right = a.data, b.data
    if left.dtype == np.float32 and input_precision == ir.INPUT_PRECISION.TF32:
        left, right = to_tf32(left), to_tf32(right)
    if left.dtype in FLOATS and d.data.dtype == np.float16:
        return interpreter.TensorHandle(_accumulate_fp16(left, right, d.data), d.dtype.scalar)
    dtype = d.data.dtype
    product = np.matmul(left.astype(dtype, copy=False), right.astype(dtype, copy=False))
    return interpreter.TensorHandle(product + d.data, d.dtype.scalar)


def _accumulate_fp16(left: Array, right: Array, accumulator: Array) -> Array:
    left, right = left.astype(np.float32), right.astype(np.float32)
    for start in range(0, left.shape[-1], _FP16_STEP):
        step = slice(start, start + _FP16_STEP)
        partial = np.matmul(left[..., step], right[..., step, :])
        accumulator = (accumulator.astype(np.float32) + partial).astype(np.float16)
    return accumulator


def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
    """Compute `x * y + z` with one rounding."""
    dtype = z.data.dtype
    if dtype in (np.float32, np.float64):
        fused = native.fma_fp32 if dtype == np.float32 else native.fma_fp64
        return interpreter.TensorHandle(fused(*np.broadcast_arrays(x.data, y.data, z.data)), z.dtype.scalar)
    product = x.data.astype(np.float64) * y.data.astype(np.float64)
    addend = z.data.astype(np.float64)
    total = product + addend
    if dtype == BFLOAT16:
        total = _sticky(total, product, addend)
    return interpreter.TensorHandle(convert(total, dtype), z.dtype.scalar)


def _sticky(total: Array, x: Array, y: Array) -> Array:
    """Make an inexact `x + y` odd (Knuth's two-sum finds the error), so that the next rounding is the only one."""
    z = total - x
    error = (x - (total - z)) + (y - z)
    even = (total.view(np.uint64) & 1) == 0
    return np.where(even & np.isfinite(error) & (error != 0), np.nextafter(total, np.copysign(np.inf, error)), total)


def create_erf(self: Any, arg: Any) -> Any:
    """Compute the error function in FP64 and round it once."""
    return interpreter.TensorHandle(_erf64(arg.data).astype(arg.data.dtype), arg.dtype.scalar)


def create_rsqrt(self: Any, arg: Any) -> Any:
    """Compute `1 / sqrt(x)` in FP64 and round it once."""
    return interpreter.TensorHandle(
        (1.0 / np.sqrt(arg.data.astype(np.float64))).astype(arg.data.dtype), arg.dtype.scalar
    )


def comparison(name: str) -> Callable[..., Any]:
    """Return the builder's comparison `name` with a result that calls itself int1, not the operands' type."""
    plain = getattr(interpreter.InterpreterBuilder, name)

    def compare(self: Any, lhs: Any, rhs: Any) -> Any:
        handle = plain(self, lhs, rhs)
        handle.dtype = tl.int1
        return handle

    return compare


def mxfp_value(value_handle: Any) -> Array:
    """Widen a `tl.dot_scaled` operand to FP32; fp8 and bf16 operands are NumPy floats here."""
    if value_handle.data.dtype in FLOATS:
        widened: Array = value_handle.data.astype(np.float32)
    else:
        widened = _PLAIN_VALUE(value_handle)
    return widened


def mxfp_scale(scale_handle: Any, compute_type: Any) -> Array:
    """Widen a scale of `tl.dot_scaled` to FP32; an fp8 scale is a NumPy float here."""
    if scale_handle.data.dtype in CUSTOM:
        widened: Array = scale_handle.data.astype(np.float32)
    else:
        widened = _PLAIN_SCALE(scale_handle, compute_type)
    return widened
