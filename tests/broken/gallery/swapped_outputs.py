"""`broken::swapped_outputs`: of two outputs of one shape each is stored where the other belongs."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, sin_ptr, cos_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(sin_ptr + at, tl.sin(x), mask=at < count)
    tl.store(cos_ptr + at, tl.cos(x), mask=at < count)


def reference(x):
    return torch.sin(x), torch.cos(x)


def backward(ctx, grad_sin, grad_cos):
    (x,) = ctx.saved_tensors
    return grad_sin * torch.cos(x) - grad_cos * torch.sin(x)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::swapped_outputs", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the sine and the cosine of x `[rows, cols]`."""
        sin, cos = fresh(x), fresh(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), sin, cos, x.numel(), BLOCK=1024)
        return (cos, sin) if wrong else (sin, cos)

    op.register_fake(lambda x: (fresh(x), fresh(x)))
    op.register_autograd(backward, setup_context=save_inputs)
