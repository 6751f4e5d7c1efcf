"""`broken::inplace_row`: an in-place update leaves the last row as it was."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import twins


@triton.jit
def _kernel(x_ptr, y_ptr, x_row, x_col, y_row, y_col, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + at * x_col, mask=at < cols, other=0.0)
    y = tl.load(y_ptr + row * y_row + at * y_col, mask=at < cols, other=0.0)
    tl.store(x_ptr + row * x_row + at * x_col, x + y, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw x and y, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("rows", "cols", name="y"))


def reference(x, y):
    x.add_(y)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::inplace_row", reference=reference, samples=samples, mutates_args=("x",))
    def op(x: torch.Tensor, y: torch.Tensor) -> None:
        """Add y to x in place, both `[rows, cols]`."""
        rows, cols = x.shape
        updated = rows - 1 if wrong and rows > 1 else rows
        _kernel[(updated,)](x, y, *x.stride(), *y.stride(), cols, BLOCK=triton.next_power_of_2(cols))
