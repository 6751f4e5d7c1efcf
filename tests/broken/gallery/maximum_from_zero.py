"""`broken::maximum_from_zero`: masked lanes are loaded as 0, so a row without a positive element has the maximum 0."""

import torch
import triton
import triton.language as tl

import opcheck

from .nan_dropped import backward, reference
from .twins import draw_x, fresh_rows, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, other, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=other)
    odd = tl.max((x != x).to(tl.int32))
    tl.store(out_ptr + row, tl.where(odd > 0, float("nan"), tl.max(x)))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::maximum_from_zero", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Find the largest element `[rows]` of each row of x `[rows, cols]`; NaN counts as the largest."""
        rows, cols = x.shape
        out = fresh_rows(x)
        other = 0.0 if wrong else float("-inf")
        _kernel[(rows,)](x.contiguous(), out, cols, other, BLOCK=triton.next_power_of_2(cols))
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
