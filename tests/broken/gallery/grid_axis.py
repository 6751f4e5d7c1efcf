"""K008: rows lie along the grid's second axis, which ends at 65,535."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, AXIS: tl.constexpr):
    row = tl.program_id(AXIS).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, 3.0 * x, mask=at < cols)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::grid_axis", reference=lambda x: 3.0 * x, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        if x.numel():
            grid = (1, rows) if wrong else (rows,)
            _kernel[grid](x.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols), AXIS=int(wrong))
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
