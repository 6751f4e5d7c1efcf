"""`broken::tail_rescale`: the last, partial tile raises the running maximum, and the sum so far is not rescaled."""

import torch
import triton
import triton.language as tl

import opcheck

from .lse_unshifted import backward, reference
from .twins import draw_x, fresh_rows, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, EVERY: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    largest = float("-inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + row * cols + start + at, mask=start + at < cols, other=float("-inf"))
        now = tl.maximum(largest, tl.max(x))
        rescale = tl.exp(largest - now)
        if not EVERY:
            rescale = tl.where((start > 0) & (start + BLOCK > cols), 1.0, rescale)
        total = total * rescale + tl.sum(tl.exp(x - now))
        largest = now
    tl.store(out_ptr + row, largest + tl.log(total))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::tail_rescale", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `log(sum(exp(x)))` `[rows]` of the rows of x `[rows, cols]`."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=32, EVERY=not wrong)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
