"""`broken::masked_row`: a row of -inf only gives `exp(-inf + inf)`, which is NaN, where it should give zeros."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, SAFE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    shift = tl.max(x)
    if SAFE:
        shift = tl.where(shift == float("-inf"), 0.0, shift)
    exponentials = tl.exp(x - shift)
    total = tl.sum(exponentials)
    if SAFE:
        total = tl.where(total == 0.0, 1.0, total)
    tl.store(y_ptr + row * cols + at, exponentials / total, mask=at < cols)


def reference(x):
    """Softmax in which a row of -inf only, where nothing may be attended to, gives zeros."""
    maximum = x.detach().amax(-1, keepdim=True)
    exponentials = torch.exp(x - torch.where(maximum == -torch.inf, 0.0, maximum))
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / torch.where(total == 0.0, 1.0, total)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    y = reference(x)
    return y * (grad - (grad * y).sum(-1, keepdim=True))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::masked_row", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the softmax over the rows of x `[rows, cols]`; fully masked rows give zeros."""
        rows, cols = x.shape
        y = fresh(x)
        _kernel[(rows,)](x.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols), SAFE=not wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
