"""K019: `mean(x^2) - mean(x)^2` cancels where the mean is far from 0."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, TWO_PASSES: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(x) / cols
    if TWO_PASSES:
        centred = tl.where(at < cols, x - mean, 0.0)
        variance = tl.sum(centred * centred) / cols
    else:
        variance = tl.sum(x * x) / cols - mean * mean
    tl.store(out_ptr + row, variance)


def reference(x):
    return x.float().var(-1, correction=0).to(x.dtype)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    wide = x.float()
    return (2.0 / x.shape[-1] * grad.float()[:, None] * (wide - wide.mean(-1, keepdim=True))).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::one_pass_variance", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the variance `[rows]` of the rows of x `[rows, cols]`, divided by cols."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=triton.next_power_of_2(cols), TWO_PASSES=not wrong)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
