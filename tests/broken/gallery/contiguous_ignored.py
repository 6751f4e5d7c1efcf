"""`broken::contiguous_ignored`: a kernel for contiguous rows does not check that they are."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, 3.0 * x, mask=at < count)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::contiguous_ignored", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for a contiguous x `[rows, cols]`."""
        if not wrong and not x.is_contiguous():
            raise ValueError("x must be contiguous")
        y = fresh(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
