"""`broken::large_square`: `sqrt(x^2 + 1)` overflows in float32 although the result is no larger than x."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, y_ptr, bound, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.abs(tl.load(x_ptr + at, mask=at < count, other=0.0))
    small = tl.minimum(x, bound)
    tl.store(y_ptr + at, tl.where(x > bound, x, tl.sqrt_rn(small * small + 1.0)), mask=at < count)


def reference(x):
    return torch.hypot(x, torch.ones_like(x))


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * (x / reference(x))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::large_square", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `sqrt(x^2 + 1)` for x `[rows, cols]`; beyond 2^13 it is |x| to float32."""
        y = fresh(x)
        bound = float("inf") if wrong else 2.0**13
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, bound, x.numel(), BLOCK=1024)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
