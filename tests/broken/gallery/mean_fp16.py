"""`broken::mean_fp16`: the mean is rounded to float16 before the deviations from it are squared."""

import torch
import triton
import triton.language as tl

import opcheck

from .one_pass_variance import backward, reference
from .twins import draw_x, fresh_rows, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, MEAN: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = (tl.sum(x) / cols).to(MEAN)
    centred = tl.where(at < cols, x - mean.to(tl.float32), 0.0)
    tl.store(out_ptr + row, tl.sum(centred * centred) / cols)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::mean_fp16", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the variance `[rows]` of the rows of x `[rows, cols]`, divided by cols."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        mean = tl.float16 if wrong else tl.float32
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=triton.next_power_of_2(cols), MEAN=mean)
        return out

    op.register_fake(fresh_rows)
    op.register_autograd(backward, setup_context=save_inputs)
