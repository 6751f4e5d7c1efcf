"""K066: the backward returns None for the weight, so the weight never learns and nothing complains."""

import torch
import triton
import triton.language as tl

import opcheck

from .grad_row_block import samples
from .twins import fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, weight_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    weight = tl.load(weight_ptr + at, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, x * weight, mask=at < cols)


def reference(x, weight):
    return x * weight


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::grad_none", reference=reference, samples=samples)
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Compute `x * weight` for x `[rows, cols]` and weight `[cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        _kernel[(rows,)](x.contiguous(), weight.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols))
        return y

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight, None if wrong else (grad * x).sum(0)

    op.register_fake(lambda x, weight: fresh(x))
    op.register_autograd(backward, setup_context=save_inputs)
