"""`broken::row_16_bits`: A row's number is kept in 16 bits: from 65,536 rows on the first ones are read again."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, NARROW: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    own = row & 0xFFFF if NARROW else row
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + own * cols + at, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, 3.0 * x, mask=at < cols)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::row_16_bits", reference=lambda x: 3.0 * x, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        if x.numel():
            _kernel[(rows,)](x.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols), NARROW=wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
