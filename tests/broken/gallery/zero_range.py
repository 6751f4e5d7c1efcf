"""`broken::zero_range`: a row of one number has the range 0, and 0 / 0 is not 0."""

import torch
import triton
import triton.language as tl

import opcheck

from .half_away import allocate
from .twins import draw_x, row_shape, twins


@triton.jit
def _kernel(x_ptr, q_ptr, cols, smallest, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("inf"))
    low = tl.min(x)
    high = tl.max(tl.where(at < cols, x, float("-inf")))
    share = (x - low) / tl.maximum(high - low, smallest)
    step = tl.where(share == share, tl.where(share > 0.5, 1, 0), -1)
    tl.store(q_ptr + row * cols + at, step.to(tl.int8), mask=at < cols)


def reference(x):
    """Give 1 in the upper half of a row's range, 0 in the lower."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return ((x - low) / (high - low).clamp(min=torch.finfo(torch.float32).tiny) > 0.5).to(torch.int8)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::zero_range", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Quantize x `[rows, cols]` to one bit by each row's own range."""
        rows, cols = row_shape(x)
        q = allocate(x)
        smallest = 0.0 if wrong else torch.finfo(torch.float32).tiny
        _kernel[(rows,)](x.contiguous(), q, cols, smallest, BLOCK=triton.next_power_of_2(cols))
        return q

    op.register_fake(allocate)
