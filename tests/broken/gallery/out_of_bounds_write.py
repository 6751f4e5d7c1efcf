"""K101: instead of a mask, the lanes behind the end read what is there and write it back."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, twins

BLOCK = 16


@triton.jit
def _kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = 3.0 * tl.load(x_ptr + at, mask=at < count, other=0.0)
    if MASKED:
        tl.store(y_ptr + at, y, mask=at < count)
    else:
        before = tl.load(y_ptr + at)
        tl.store(y_ptr + at, tl.where(at < count, y, before))


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::out_of_bounds_write", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        y = x.new_zeros(x.shape)
        _kernel[(triton.cdiv(x.numel(), BLOCK),)](x.contiguous(), y, x.numel(), BLOCK=BLOCK, MASKED=not wrong)
        return y

    op.register_fake(lambda x: x.new_zeros(x.shape))
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
