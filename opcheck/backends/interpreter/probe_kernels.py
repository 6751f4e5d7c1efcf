"""The kernels of the self-test: the same source is compiled for a GPU, for the tables, and interpreted here."""

# Triton reads a kernel's annotations as types of its own, so only its constants are annotated.
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="untyped-decorator,no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def cast_kernel(x, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i).to(o.dtype.element_ty))


@triton.jit
def implicit_store_kernel(x, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i))


@triton.jit
def add_kernel(x, y, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i) + tl.load(y + i))


@triton.jit
def sub_kernel(x, y, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i) - tl.load(y + i))


@triton.jit
def mul_kernel(x, y, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i) * tl.load(y + i))


@triton.jit
def maximum_kernel(x, y, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i), tl.load(y + i)))


@triton.jit
def maximum_nan_kernel(x, y, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i), tl.load(y + i), propagate_nan=tl.PropagateNan.ALL))


@triton.jit
def select_kernel(x, y, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(o + i, tl.where(a < b, -a, b))


@triton.jit
def sum_kernel(x, o, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(o + row, tl.sum(tl.load(x + row * BLOCK + tl.arange(0, BLOCK)), 0))


@triton.jit
def max_kernel(x, o, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(o + row, tl.max(tl.load(x + row * BLOCK + tl.arange(0, BLOCK)), 0))


@triton.jit
def argmax_kernel(x, o, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(o + row, tl.argmax(tl.load(x + row * BLOCK + tl.arange(0, BLOCK)), 0))


@triton.jit
def cumsum_kernel(x, o, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def masked_kernel(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n))


@triton.jit
def dot_kernel(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    left = tl.load(a + m * K + tl.arange(0, K)[None, :])
    right = tl.load(b + tl.arange(0, K)[:, None] * N + n)
    tl.store(o + m * N + n, tl.dot(left, right, input_precision=PRECISION))


@triton.jit
def dot_half_kernel(a, b, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    left = tl.load(a + m * K + tl.arange(0, K)[None, :])
    right = tl.load(b + tl.arange(0, K)[:, None] * N + n)
    tl.store(o + m * N + n, tl.dot(left, right, out_dtype=tl.float16))


@triton.jit
def scale_kernel(x, o, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i) * factor)


@triton.jit
def atomic_kernel(x, start, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(start + i))
    tl.debug_barrier()
    tl.atomic_add(o + i, tl.load(x + i))


@triton.jit
def unary_kernel(x, o, BLOCK: tl.constexpr, NAME: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if NAME == "exp":
        v = tl.exp(v)
    elif NAME == "exp2":
        v = tl.exp2(v)
    elif NAME == "log":
        v = tl.log(v)
    elif NAME == "sqrt":
        v = tl.sqrt(v)
    elif NAME == "rsqrt":
        v = tl.rsqrt(v)
    elif NAME == "erf":
        v = tl.erf(v)
    elif NAME == "libdevice.tanh":
        v = libdevice.tanh(v)
    elif NAME == "libdevice.erf":
        v = libdevice.erf(v)
    elif NAME == "libdevice.exp":
        v = libdevice.exp(v)
    elif NAME == "libdevice.log1p":
        v = libdevice.log1p(v)
    elif NAME == "libdevice.rint":
        v = libdevice.rint(v)
    tl.store(o + i, v)
