"""`broken::argument_hardcoded`: the slope is a constant of the kernel, so every other value is ignored."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, slope, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, tl.where(x > 0, x, slope * x), mask=at < count)


def reference(x, slope=0.25):
    return torch.nn.functional.leaky_relu(x, slope)


def setup_context(ctx, inputs, output):
    x, ctx.slope = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.where(x > 0, grad, ctx.slope * grad), None


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::argument_hardcoded", reference=reference, samples=draw_x)
    def op(x: torch.Tensor, slope: float = 0.25) -> torch.Tensor:
        """Compute `x` where it is positive and `slope * x` elsewhere, for x `[rows, cols]`."""
        y = fresh(x)
        used = 0.25 if wrong else slope
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, used, x.numel(), BLOCK=1024)
        return y

    op.register_fake(lambda x, slope=0.25: fresh(x))
    op.register_autograd(backward, setup_context=setup_context)
