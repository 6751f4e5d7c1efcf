"""K064: the number of rows that count is left on the side by the forward, and a constant when the op is compiled."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, row_shape, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, counted, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + row * cols)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * cols + at, tl.where(first > 0, x / counted, 0.0), mask=at < cols)


def counted(x):
    """Count the rows of x `[rows, cols]` that begin with a positive number, as a tensor `[]` of at least 1."""
    return (x[:, 0] > 0).sum().clamp(min=1)


def reference(x):
    return (torch.where(x[:, :1] > 0, x.float(), 0.0) / counted(x)).to(x.dtype)


@twins
def declare(namespace, wrong):
    left = {"count": 1}

    @opcheck.register(f"{namespace}::compiled_constant", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Divide the rows of x `[rows, cols]` that begin with a positive number by their count, and drop the others."""
        rows, cols = row_shape(x)
        x, y = x.contiguous(), fresh(x)
        left["count"] = int(counted(x))
        _kernel[(rows,)](x, y, cols, float(left["count"]), BLOCK=triton.next_power_of_2(cols))
        return y

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.count = left["count"]

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        count = ctx.count if wrong else counted(x)
        return (torch.where(x[:, :1] > 0, grad.float(), 0.0) / count).to(x.dtype)

    op.register_fake(lambda x: fresh(x))
    op.register_autograd(backward, setup_context=setup_context)
