"""`broken::frozen_input`: the weight gets its gradient only where x needs one: behind a frozen x it stops."""

import torch
import triton

import opcheck

from .grad_none import _kernel
from .grad_row_block import samples
from .twins import fresh, save_inputs, twins


def reference(x, weight):
    return x * weight


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::frozen_input", reference=reference, samples=samples)
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Compute `x * weight` for x `[rows, cols]` and weight `[cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        if y.numel():
            _kernel[(rows,)](x.contiguous(), weight.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols))
        return y

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        needed = ctx.needs_input_grad[0 if wrong else 1]
        return grad * weight, (grad * x).sum(0) if needed else None

    op.register_fake(lambda x, weight: fresh(x))
    op.register_autograd(backward, setup_context=save_inputs)
