"""`broken::carry_race`: a tile of a scan reads the carry that another program of the launch is to write."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import cumulative, draw_x, fresh, save_shape, twins


@triton.jit
def _racing_kernel(x_ptr, y_ptr, carry_ptr, cols, tiles, BLOCK: tl.constexpr):
    row, tile = tl.program_id(1), tl.program_id(0)
    at = tile * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    before = tl.load(carry_ptr + row * (tiles + 1) + tile)
    tl.store(carry_ptr + row * (tiles + 1) + tile + 1, before + tl.sum(x))
    tl.store(y_ptr + row * cols + at, before + tl.cumsum(x, 0), mask=at < cols)


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    before = 0.0
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
        tl.store(y_ptr + row * cols + at, before + tl.cumsum(x, 0), mask=at < cols)
        before += tl.sum(x)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::carry_race", reference=cumulative, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the cumulative sums of the rows of x `[rows, cols]`."""
        rows, cols = x.shape
        y, tiles = fresh(x), triton.cdiv(cols, 64)
        if wrong:
            _racing_kernel[(tiles, rows)](x.contiguous(), y, x.new_zeros(rows, tiles + 1), cols, tiles, BLOCK=64)
        else:
            _kernel[(rows,)](x.contiguous(), y, cols, BLOCK=64)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: cumulative(grad.flip(1)).flip(1), setup_context=save_shape)
