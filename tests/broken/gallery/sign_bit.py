"""`broken::sign_bit`: the gradient takes the slope of negative numbers at -0, whose sign bit is set."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins

SLOPE = 0.25


@triton.jit
def _kernel(v_ptr, x_ptr, y_ptr, slope, count, BLOCK: tl.constexpr, BY_VALUE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(v_ptr + at, mask=at < count, other=0.0)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    negative = x < 0 if BY_VALUE else x.to(tl.int32, bitcast=True) < 0
    tl.store(y_ptr + at, tl.where(negative, slope * v, v), mask=at < count)


def sloped(v, x, by_value):
    """Compute `v` where x is not negative, and `SLOPE * v` where it is."""
    y = fresh(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    _kernel[grid](v.contiguous(), x.contiguous(), y, SLOPE, x.numel(), BLOCK=1024, BY_VALUE=by_value)
    return y


def reference(x):
    return torch.where(x >= 0, x, SLOPE * x)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::sign_bit", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `x`, or `0.25 * x` where x is negative, for x `[rows, cols]`; the derivative at 0 is 1."""
        return sloped(x, x, True)

    @torch.library.custom_op(f"{namespace}::sign_bit_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return sloped(grad, x, not wrong)

    op.register_fake(fresh)
    grad_x.register_fake(lambda grad, x: fresh(x))
    op.register_autograd(lambda ctx, grad: grad_x(grad, *ctx.saved_tensors), setup_context=save_inputs)
