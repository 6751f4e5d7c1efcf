"""`broken::float16_branch`: the branch for float16, and only that, divides by the padded length of a row."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * cols + at, x - tl.sum(x) / length, mask=at < cols)


def reference(x):
    wide = x.float()
    return (wide - wide.mean(-1, keepdim=True)).to(x.dtype)


def backward(ctx, grad):
    wide = grad.float()
    return (wide - wide.mean(-1, keepdim=True)).to(grad.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::float16_branch", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Subtract its mean from each row of x `[rows, cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        block = triton.next_power_of_2(cols)
        length = block if wrong and x.dtype == torch.float16 else cols
        _kernel[(rows,)](x.contiguous(), y, cols, length, BLOCK=block)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
