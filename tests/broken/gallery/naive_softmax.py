"""`broken::naive_softmax`: the maximum is not subtracted, so large logits give `inf / inf`."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, SHIFTED: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    if SHIFTED:
        x -= tl.max(x)
    exponentials = tl.exp(x)
    tl.store(y_ptr + row * cols + at, exponentials / tl.sum(exponentials), mask=at < cols)


def reference(x):
    return torch.softmax(x, -1)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    y = torch.softmax(x, -1)
    return y * (grad - (grad * y).sum(-1, keepdim=True))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::naive_softmax", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the softmax over the rows of x `[rows, cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        _kernel[(rows,)](x.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols), SHIFTED=not wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
