"""`broken::outlier_row`: the last row is zeros, and a first row of a thousand times its size hides it from maxima."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr, SKIP_LAST: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    y = x - tl.sum(x) / cols
    if SKIP_LAST:
        y = tl.where((row > 0) & (row == rows - 1), 0.0, y)
    tl.store(y_ptr + row * cols + at, y, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]` with a first row that is 1,024 times as large."""
    x = case.tensor("rows", "cols", name="x")
    x[:1] *= 1024.0
    return Sample(x)


def reference(x):
    wide = x.float()
    return (wide - wide.mean(-1, keepdim=True)).to(x.dtype)


def backward(ctx, grad):
    wide = grad.float()
    return (wide - wide.mean(-1, keepdim=True)).to(grad.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::outlier_row", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Subtract its mean from each row of x `[rows, cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        _kernel[(rows,)](x.contiguous(), y, rows, cols, BLOCK=triton.next_power_of_2(cols), SKIP_LAST=wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward)
