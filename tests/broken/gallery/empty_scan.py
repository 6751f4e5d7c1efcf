"""K077: the last tile of a cumulative sum stores the total, and a row of no elements has no tile."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import cumulative, draw_x, fresh, fresh_rows, save_shape, twins


@triton.jit
def _kernel(x_ptr, y_ptr, total_ptr, cols, BLOCK: tl.constexpr, ALWAYS: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
        tl.store(y_ptr + row * cols + at, total + tl.cumsum(x, 0), mask=at < cols)
        total += tl.sum(x)
        if start + BLOCK >= cols:
            tl.store(total_ptr + row, total)
    if ALWAYS:
        tl.store(total_ptr + row, total)


def reference(x):
    return cumulative(x), x.sum(-1)


def backward(ctx, grad, grad_total):
    return cumulative(grad.flip(1)).flip(1) + grad_total[:, None]


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::empty_scan", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the cumulative sums of the rows of x `[rows, cols]`, and their totals `[rows]`."""
        rows, cols = x.shape
        y, total = fresh(x), fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), y, total, cols, BLOCK=64, ALWAYS=not wrong)
        return y, total

    op.register_fake(lambda x: (fresh(x), fresh_rows(x)))
    op.register_autograd(backward, setup_context=save_shape)
