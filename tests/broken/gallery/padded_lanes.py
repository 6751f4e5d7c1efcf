"""K001: masked lanes, loaded as 0, enter the variance as `(0 - mean)^2`."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    centred = x - tl.sum(x) / cols
    if MASKED:
        centred = tl.where(at < cols, centred, 0.0)
    tl.store(out_ptr + row, tl.sum(centred * centred) / cols)


def reference(x):
    return x.var(-1, correction=0)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return 2.0 / x.shape[-1] * grad[:, None] * (x - x.mean(-1, keepdim=True))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::padded_lanes", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the variance `[rows]` of the rows of x `[rows, cols]`, divided by cols."""
        rows, cols = x.shape
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=triton.next_power_of_2(cols), MASKED=not wrong)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
