"""`broken::lse_unshifted`: exponentials are added up without the maximum subtracted, and overflow from 89 on."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, SHIFTED: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
    shift = 0.0
    if SHIFTED:
        shift = tl.max(x)
    tl.store(out_ptr + row, shift + tl.log(tl.sum(tl.exp(x - shift))))


def reference(x):
    return torch.logsumexp(x, -1)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.softmax(x, -1) * grad[:, None]


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::lse_unshifted", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `log(sum(exp(x)))` `[rows]` of the rows of x `[rows, cols]`."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=triton.next_power_of_2(cols), SHIFTED=not wrong)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
