"""K059: the backward takes the output that it saved for scratch memory."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, tl.sigmoid(x), mask=at < count)


@triton.jit
def _grad_kernel(grad_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr, SCRATCH: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + at, mask=at < count, other=0.0)
    y = tl.load(y_ptr + at, mask=at < count, other=0.0)
    slope = y * (1.0 - y)
    if SCRATCH:
        tl.store(y_ptr + at, slope, mask=at < count)
    tl.store(out_ptr + at, grad * slope, mask=at < count)


def reference(x):
    return torch.sigmoid(x)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::saved_overwritten", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `sigmoid(x)` for x `[rows, cols]`."""
        y = fresh(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, x.numel(), BLOCK=1024)
        return y

    @torch.library.custom_op(f"{namespace}::saved_overwritten_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out, count = fresh(y), y.numel()
        _grad_kernel[(triton.cdiv(count, 1024),)](grad.contiguous(), y, out, count, BLOCK=1024, SCRATCH=wrong)
        return out

    op.register_fake(fresh)
    grad_x.register_fake(lambda grad, y: fresh(y))
    op.register_autograd(
        lambda ctx, grad: grad_x(grad, *ctx.saved_tensors),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
    )
