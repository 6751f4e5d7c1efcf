"""K071: what the backward needs is kept on ctx without its history: second derivatives are 0."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, x * x * x, mask=at < count)


def reference(x):
    return x * x * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::double_backward", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `x ** 3` for x `[rows, cols]`."""
        y = fresh(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, x.numel(), BLOCK=1024)
        return y

    def setup_context(ctx, inputs, output):
        (x,) = inputs
        if wrong:
            ctx.slope = 3.0 * x.detach() * x.detach()
        else:
            ctx.save_for_backward(x)

    def backward(ctx, grad):
        if wrong:
            return grad * ctx.slope
        (x,) = ctx.saved_tensors
        return grad * (3.0 * x * x)

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=setup_context)
