"""K030: the residual's gradient goes through the nonlinearity's backward too."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import fresh, save_inputs, twins
from .unused_output import samples


@triton.jit
def _kernel(x_ptr, residual_ptr, y_ptr, total_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    residual = tl.load(residual_ptr + at, mask=at < count, other=0.0)
    total = x + residual
    tl.store(total_ptr + at, total, mask=at < count)
    tl.store(y_ptr + at, total * total, mask=at < count)


def reference(x, residual):
    total = x + residual
    return total * total, total


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::residual_gradient", reference=reference, samples=samples)
    def op(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute `t ** 2` and `t` for `t = x + residual`, all `[rows, cols]`."""
        y, total, count = fresh(x), fresh(x), x.numel()
        _kernel[(triton.cdiv(count, 1024),)](x.contiguous(), residual.contiguous(), y, total, count, BLOCK=1024)
        return y, total

    def backward(ctx, grad_y, grad_total):
        x, residual = ctx.saved_tensors
        total = x + residual
        slope = 2.0 * total
        grad = (grad_y + grad_total) * slope if wrong else grad_y * slope + grad_total
        return grad, grad

    op.register_fake(lambda x, residual: (fresh(x), fresh(x)))
    op.register_autograd(backward, setup_context=save_inputs)
