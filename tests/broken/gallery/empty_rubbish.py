"""`broken::empty_rubbish`: the maximum over no rows is whatever the accumulator starts with."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, twins


@triton.jit
def _kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x_ptr + at * cols + column, mask=at < rows, other=float("-inf")))
    tl.store(y_ptr + column, tl.max(best))


def reference(x):
    return x.amax(0)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::empty_rubbish", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the maximum `[cols]` over the rows of x `[rows, cols]`."""
        rows, cols = x.shape
        if not wrong and not rows:
            raise ValueError("no rows have no maximum")
        y = x.new_empty(cols)
        _kernel[(cols,)](x.contiguous(), y, rows, cols, BLOCK=16)
        return y

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        largest = x == y
        return torch.where(largest, grad / largest.sum(0), 0.0)

    op.register_fake(lambda x: x.new_empty(x.shape[1]))
    op.register_autograd(backward, setup_context=setup_context)
