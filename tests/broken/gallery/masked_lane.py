"""K012: the masked lanes of a load without `other` enter a maximum of magnitudes, which only 0 leaves right."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=OTHER)
    tl.store(out_ptr + row, tl.max(tl.abs(x)))


def reference(x):
    return x.abs().amax(1)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    largest = x.abs() == x.abs().amax(1, keepdim=True)
    return grad[:, None] * largest / largest.sum(1, keepdim=True) * x.sign()


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::masked_lane", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Find the largest magnitude in each row of x `[rows, cols]`."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        block = triton.next_power_of_2(cols)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=block, OTHER=None if wrong else 0.0)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
