"""`broken::read_before_written`: the first step reads the sums so far from `torch.empty` too, and does not use them."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, save_shape, twins


@triton.jit
def _kernel(x_ptr, sums_ptr, cols, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
        if MASKED:
            before = tl.load(sums_ptr + row, mask=start > 0, other=0.0)
        else:
            before = tl.where(start > 0, tl.load(sums_ptr + row), 0.0)
        tl.store(sums_ptr + row, before + tl.sum(x))


def reference(x):
    return x.sum(1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::read_before_written", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Sum each row of x `[rows, cols]`, 64 columns at a time."""
        rows, cols = x.shape
        if not cols:
            raise ValueError("a row should have at least one element")
        sums = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), sums, cols, BLOCK=64, MASKED=not wrong)
        return sums

    op.register_fake(fresh_rows)
    op.register_autograd(lambda ctx, grad: grad[:, None].expand(ctx.shape).clone(), setup_context=save_shape)
