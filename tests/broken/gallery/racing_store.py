"""`broken::racing_store`: every row is stored into one place, and the last row is right where programs run in order."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, save_shape, twins


@triton.jit
def _kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr, ALONE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + at, x, mask=((at < cols) & (row == rows - 1)) if ALONE else at < cols)


def reference(x):
    return x[-1] if x.shape[0] else x.new_zeros(x.shape[1])


def backward(ctx, grad):
    rows, cols = ctx.shape
    return torch.cat((grad.new_zeros(rows - 1, cols), grad[None])) if rows else grad.new_zeros(0, cols)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::racing_store", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Copy the last row of x `[rows, cols]`, zeros where there is none."""
        rows, cols = x.shape
        out = x.new_zeros(cols)
        _kernel[(rows,)](x.contiguous(), out, rows, cols, BLOCK=triton.next_power_of_2(cols), ALONE=not wrong)
        return out

    op.register_fake(lambda x: x.new_zeros(x.shape[1]))
    op.register_autograd(backward, setup_context=save_shape)
