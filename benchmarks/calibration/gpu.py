"""Triton kernels for the calibration on a GPU: their exponential is the hardware's fast one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from benchmarks.calibration.kernel import Op, Tensors
from benchmarks.calibration.norms import EPS


@triton.jit
def _softmax(x_ptr, dy_ptr, y_ptr, dx_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row + at, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    y = e / tl.sum(e, 0)
    dy = tl.load(dy_ptr + row + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row + at, y, mask=mask)
    tl.store(dx_ptr + row + at, y * (dy - tl.sum(y * dy, 0)), mask=mask)


@triton.jit
def _rms_norm(x_ptr, w_ptr, dy_ptr, y_ptr, dx_ptr, rows, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + (row // rows) * cols + at, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * cols + at, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, 0) / cols + eps)
    unit = x * rstd
    g = dy * w
    tl.store(y_ptr + row * cols + at, unit * w, mask=mask)
    tl.store(dx_ptr + row * cols + at, rstd * (g - unit * (tl.sum(g * unit, 0) / cols)), mask=mask)


@triton.jit
def _silu(x_ptr, dy_ptr, y_ptr, dx_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32)
    s = 1.0 / (1.0 + tl.exp(-x))
    tl.store(y_ptr + at, x * s, mask=mask)
    tl.store(dx_ptr + at, dy * s * (1.0 + x * (1.0 - s)), mask=mask)


@triton.jit
def _gelu(x_ptr, dy_ptr, y_ptr, dx_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32)
    below = 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + at, x * below, mask=mask)
    tl.store(dx_ptr + at, dy * (below + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)), mask=mask)


def softmax(inputs: Tensors, dy: Tensor) -> Tensors:
    """Run the softmax, one program per row of `[seeds, rows, cols]`."""
    x = inputs["x"].contiguous()
    y, dx, cols = torch.empty_like(x), torch.empty_like(x), x.shape[-1]
    _softmax[(x.numel() // cols,)](x, dy.contiguous(), y, dx, cols, BLOCK=triton.next_power_of_2(cols))
    return {"out": y, "grad x": dx}


def rms_norm(inputs: Tensors, dy: Tensor) -> Tensors:
    """Run the RMS normalization, one program per row; the weight's gradient is left out."""
    x, weight = inputs["x"].contiguous(), inputs["weight"].contiguous()
    y, dx, (_, rows, cols) = torch.empty_like(x), torch.empty_like(x), x.shape
    grid = (x.numel() // cols,)
    _rms_norm[grid](x, weight, dy.contiguous(), y, dx, rows, cols, EPS, BLOCK=triton.next_power_of_2(cols))
    return {"out": y, "grad x": dx}


def _elementwise(kernel) -> Callable[[Tensors, Tensor], Tensors]:
    def run(inputs: Tensors, dy: Tensor) -> Tensors:
        x = inputs["x"].contiguous()
        y, dx = torch.empty_like(x), torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, dy.contiguous(), y, dx, x.numel(), BLOCK=1024)
        return {"out": y, "grad x": dx}

    return run


KERNELS = {"softmax": softmax, "rms_norm": rms_norm, "silu": _elementwise(_silu), "gelu": _elementwise(_gelu)}


def with_triton(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return the ops with the Triton targets that there are."""
    return tuple(
        replace(op, targets={"triton": KERNELS[op.name], **op.targets}) if op.name in KERNELS else op for op in ops
    )
