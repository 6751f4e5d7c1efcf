"""`broken::accumulator_fp16`: 4,096 terms are summed in float16, which no longer counts by ones above 2,048."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh_rows, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, rows, cols, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], ACCUMULATOR)
    for col in range(cols):
        x = tl.load(x_ptr + row * cols + col, mask=row < rows, other=0.0).to(ACCUMULATOR)
        total += x * x
    tl.store(out_ptr + row, total, mask=row < rows)


def reference(x):
    return x.float().square().sum(-1).to(x.dtype)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return (2.0 * grad.float()[:, None] * x.float()).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::accumulator_fp16", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the sum of squares `[rows]` of the rows of x `[rows, cols]`."""
        rows, cols = x.shape
        out = fresh_rows(x)
        accumulator = tl.float16 if wrong else tl.float32
        _kernel[(triton.cdiv(rows, 16),)](x.contiguous(), out, rows, cols, ACCUMULATOR=accumulator, BLOCK=16)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
