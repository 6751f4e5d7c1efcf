"""K045: a softcap computes tanh from exp(t) and exp(-t), of which one overflows beyond 88: inf / inf."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins

CAP = 2.0


@triton.jit
def _kernel(x_ptr, y_ptr, count, CAP: tl.constexpr, BLOCK: tl.constexpr, SAFE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    t = tl.load(x_ptr + at, mask=at < count, other=0.0) / CAP
    if SAFE:
        small = tl.exp(-2.0 * tl.abs(t))
        tanh = tl.where(t < 0, -1.0, 1.0) * (1.0 - small) / (1.0 + small)
        tanh = tl.where(t != t, t, tanh)
    else:
        up = tl.exp(t)
        down = tl.exp(-t)
        tanh = (up - down) / (up + down)
    tl.store(y_ptr + at, CAP * tanh, mask=at < count)


def reference(x):
    return CAP * torch.tanh(x / CAP)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * (1.0 - torch.tanh(x / CAP).square())


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::softcap", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `2 * tanh(x / 2)` for x `[rows, cols]`."""
        y = fresh(x)
        _kernel[(triton.cdiv(x.numel(), 256),)](x.contiguous(), y, x.numel(), CAP=CAP, BLOCK=256, SAFE=not wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
