"""Triton kernels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

BLOCK = 128


@triton.jit
def scale_unbounded(x_ptr, y_ptr, n, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = 3.0 * tl.load(x_ptr + at, mask=at < n, other=0.0)
    if WRONG:
        tl.store(y_ptr + at, y)
    else:
        tl.store(y_ptr + at, y, mask=at < n)


@triton.jit
def add_rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = 3.0 * tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    if WRONG:
        before = tl.load(y_ptr + at, mask=at < cols, other=0.0)
        tl.store(y_ptr + at, before + x, mask=at < cols)
    else:
        tl.atomic_add(y_ptr + at, x, mask=at < cols)


@triton.jit
def scale_but_last(x_ptr, y_ptr, n, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK + lane
    wanted = at < n
    if WRONG:
        wanted = wanted & (lane < BLOCK - 1)
    tl.store(y_ptr + at, 3.0 * tl.load(x_ptr + at, mask=wanted, other=0.0), mask=wanted)


def scaled(x):
    """Return `3 * x` for x `[rows, cols]`."""
    return 3.0 * x


def summed(x):
    """Return `[cols]`, three times the sums over the rows of x `[rows, cols]`."""
    return 3.0 * x.sum(0)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"))


def _declare_scaling(name: str, kernel, namespace: str, wrong: bool) -> None:
    @opcheck.register(f"{namespace}::triton_{name}", reference=scaled, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK, WRONG=wrong)
        return y

    op.register_fake(lambda x: torch.empty_like(x, memory_format=torch.contiguous_format))
    op.register_autograd(lambda ctx, grad: 3.0 * grad)


def _declare_race(namespace: str, wrong: bool) -> None:
    @opcheck.register(f"{namespace}::triton_race", reference=summed, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        x = x.contiguous()
        y = x.new_zeros(cols)
        add_rows[(rows, triton.cdiv(cols, BLOCK))](x, y, cols, BLOCK=BLOCK, WRONG=wrong)
        return y

    op.register_fake(lambda x: x.new_empty(x.shape[1]))

    def keep(ctx, inputs, output):
        ctx.rows = inputs[0].shape[0]

    op.register_autograd(lambda ctx, grad: 3.0 * grad.expand(ctx.rows, -1), setup_context=keep)


for _namespace, _wrong in (("right", False), ("wrong", True)):
    _declare_scaling("out_of_bounds", scale_unbounded, _namespace, _wrong)
    _declare_scaling("unwritten", scale_but_last, _namespace, _wrong)
    _declare_race(_namespace, _wrong)
