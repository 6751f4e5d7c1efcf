"""`broken::first_index`: index 0 is taken for padding, and its row comes back as zeros."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import row_shape, twins


@triton.jit
def _kernel(table_ptr, index_ptr, out_ptr, cols, lowest, end, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + row)
    known = (index >= lowest) & (index < end)
    found = tl.load(table_ptr + index * cols + at, mask=(at < cols) & known, other=0.0)
    tl.store(out_ptr + row * cols + at, found, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw table `[entries, cols]` and index `[rows]`."""
    table = case.tensor("entries", "cols", name="table")
    return Sample(table, case.integers(0, max(1, case.dims["entries"]), "rows", name="index"))


def reference(table, index):
    return table[index]


def allocate(table, index):
    return table.new_empty(index.shape[0], table.shape[1])


def look_up(table, index, lowest, end):
    """Look up rows of table `[entries, cols]` with `lowest <= index < end`; others are zeros."""
    entries, cols = row_shape(table)
    if not entries:
        raise ValueError("an empty table has nothing to look up")
    out = allocate(table, index)
    _kernel[(index.shape[0],)](
        table.contiguous(), index.contiguous(), out, cols, lowest, end, BLOCK=triton.next_power_of_2(cols)
    )
    return out


def setup_context(ctx, inputs, output):
    table, index = inputs
    ctx.entries = table.shape[0]
    ctx.save_for_backward(index)


def backward(ctx, grad):
    (index,) = ctx.saved_tensors
    return grad.new_zeros(ctx.entries, grad.shape[1]).index_add(0, index, grad), None


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::first_index", reference=reference, samples=samples)
    def op(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Look up rows of table `[entries, cols]` by index `[rows]`, giving `[rows, cols]`."""
        return look_up(table, index, 1 if wrong else 0, table.shape[0])

    op.register_fake(allocate)
    op.register_autograd(backward, setup_context=setup_context)
