"""`broken::partial_sums_fp16`: the partial sums of the lanes are rounded to float16 before they are added up."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, row_shape, twins

LANES = 32


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, NARROW: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    if NARROW:
        total = total.to(tl.float16).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total))


def reference(x):
    return x.float().sum(-1).to(x.dtype)


def setup_context(ctx, inputs, output):
    (x,) = inputs
    ctx.cols = x.shape[1]


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::partial_sums_fp16", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the sum `[rows]` of the rows of x `[rows, cols]`."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=LANES, NARROW=wrong)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(lambda ctx, grad: grad[:, None].expand(-1, ctx.cols), setup_context=setup_context)
