"""`broken::out_of_bounds_read`: each row's successor is read, the last row's too, and what it is not is thrown away."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=0.0)
    exists = row + 1 < rows
    after = tl.load(x_ptr + (row + 1) * cols + at, mask=(mask & exists) if MASKED else mask, other=0.0)
    tl.store(y_ptr + row * cols + at, x - tl.where(exists, after, 0.0), mask=mask)


def reference(x):
    return x - torch.cat((x, torch.zeros_like(x[:1])))[1:] if x.shape[0] else x.clone()


def backward(ctx, grad):
    return grad - torch.cat((torch.zeros_like(grad[:1]), grad))[:-1] if grad.shape[0] else grad.clone()


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::out_of_bounds_read", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Subtract from each row of x `[rows, cols]` the next one, from the last one nothing."""
        rows, cols = x.shape
        y = fresh(x)
        _kernel[(rows,)](x.contiguous(), y, rows, cols, BLOCK=triton.next_power_of_2(cols), MASKED=not wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward)
