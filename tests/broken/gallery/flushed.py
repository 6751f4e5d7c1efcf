"""`broken::flushed`: subnormal inputs count as zero."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins

SMALLEST_NORMAL = 2.0**-126


@triton.jit
def _kernel(x_ptr, y_ptr, smallest, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, tl.where(tl.abs(x) < smallest, 0.0, 3.0 * x), mask=at < count)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::flushed", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        y = fresh(x)
        smallest = SMALLEST_NORMAL if wrong else 0.0
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, smallest, x.numel(), BLOCK=1024)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
