"""K015: pooled rows are added in float16, four at a time, before the float32 accumulator."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import save_shape, twins


@triton.jit
def _kernel(x_ptr, out_ptr, rows, cols, ROW: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, rows, 4):
        four = tl.zeros([BLOCK], ROW)
        for row in range(first, first + 4):
            four += tl.load(x_ptr + row * cols + at, mask=(row < rows) & (at < cols), other=0.0).to(ROW)
        total += four.to(tl.float32)
    tl.store(out_ptr + at, total, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`, by columns: what a family does along the last dimension it does along the rows."""
    return Sample(case.tensor("cols", "rows", name="x").t().contiguous())


def reference(x):
    return x.float().sum(0).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::rows_added_fp16", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Sum x `[rows, cols]` over its rows, giving `[cols]`."""
        rows, cols = x.shape
        out = x.new_empty(cols)
        row = tl.float16 if wrong else tl.float32
        _kernel[(1,)](x.contiguous(), out, rows, cols, ROW=row, BLOCK=triton.next_power_of_2(max(cols, 1)))
        return out

    op.register_fake(lambda x: x.new_empty(x.shape[1]))
    op.register_autograd(lambda ctx, grad: grad.expand(ctx.shape).clone(), setup_context=save_shape)
