"""K053: a tile of rows that see nothing has a negative length left, and returns before its zeros are stored."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, row_shape, twins

BLOCK_ROWS = 2


@triton.jit
def _kernel(x_ptr, y_ptr, rows, cols, BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr, SKIP: tl.constexpr):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    left = tl.program_id(0) * BLOCK_ROWS + BLOCK_ROWS + cols - rows
    if SKIP and left <= 0:
        return
    col = tl.arange(0, BLOCK)
    seen = (col[None, :] <= (row + cols - rows)[:, None]) & (row < rows)[:, None] & (col < cols)[None, :]
    x = tl.load(x_ptr + row[:, None] * cols + col[None, :], mask=seen, other=0.0)
    tl.store(y_ptr + row, tl.sum(x, 1), mask=row < rows)


def reference(x):
    return x.tril(x.shape[1] - x.shape[0]).sum(1)


def setup_context(ctx, inputs, output):
    ctx.shape = inputs[0].shape


def backward(ctx, grad):
    rows, cols = ctx.shape
    return grad[:, None].expand(rows, cols).tril(cols - rows)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::masked_tile", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Sum what each row of x `[rows, cols]` sees: the last one all, each one before it an element less."""
        rows, cols = row_shape(x)
        y = fresh_rows(x)
        _kernel[(triton.cdiv(rows, BLOCK_ROWS),)](
            x.contiguous(), y, rows, cols, BLOCK_ROWS=BLOCK_ROWS, BLOCK=triton.next_power_of_2(cols), SKIP=wrong
        )
        return y

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=setup_context)
