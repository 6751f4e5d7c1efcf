"""`broken::finite_start`: the running maximum starts at -1e9, above a row that is masked with lower numbers."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, start, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
    exponentials = tl.exp(x - tl.maximum(start, tl.max(x)))
    tl.store(y_ptr + row * cols + at, exponentials / tl.sum(exponentials), mask=at < cols)


def reference(x):
    return torch.softmax(x, -1)


def backward(ctx, grad):
    y = reference(*ctx.saved_tensors)
    return y * (grad - (grad * y).sum(-1, keepdim=True))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::finite_start", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the softmax over the rows of x `[rows, cols]`."""
        rows, cols = row_shape(x)
        y = fresh(x)
        start = -1e9 if wrong else float("-inf")
        _kernel[(rows,)](x.contiguous(), y, cols, start, BLOCK=triton.next_power_of_2(cols))
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
