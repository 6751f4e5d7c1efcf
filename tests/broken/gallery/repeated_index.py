"""`broken::repeated_index`: a row that is looked up twice gets the gradient of its last use only, not of all."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import twins


@triton.jit
def _grad_kernel(grad_ptr, index_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr, ADD: tl.constexpr):
    own = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for row in range(rows):
        used = tl.load(index_ptr + row) == own
        grad = tl.load(grad_ptr + row * cols + at, mask=at < cols, other=0.0)
        total = tl.where(used, total + grad if ADD else grad, total)
    tl.store(out_ptr + own * cols + at, total, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw table `[entries, cols]` and index `[rows]`; with 5 rows and 4 entries some index is there twice."""
    index = case.integers(0, max(1, case.dims["entries"]), "rows", name="index")
    return Sample(case.tensor("entries", "cols", name="table"), index)


def reference(table, index):
    return table[index]


def setup_context(ctx, inputs, output):
    table, index = inputs
    ctx.entries = table.shape[0]
    ctx.save_for_backward(index)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::repeated_index", reference=reference, samples=samples)
    def op(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Look up rows of table `[entries, cols]` by index `[rows]`, giving `[rows, cols]`."""
        return table[index]

    @torch.library.custom_op(f"{namespace}::repeated_index_backward", mutates_args=())
    def grad_table(grad: torch.Tensor, index: torch.Tensor, entries: int) -> torch.Tensor:
        rows, cols = grad.shape
        out = grad.new_empty(entries, cols)
        _grad_kernel[(entries,)](
            grad.contiguous(),
            index.contiguous(),
            out,
            rows,
            cols,
            BLOCK=triton.next_power_of_2(max(cols, 1)),
            ADD=not wrong,
        )
        return out

    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad_table(grad, index, ctx.entries), None

    op.register_fake(lambda table, index: table.new_empty(index.shape[0], table.shape[1]))
    grad_table.register_fake(lambda grad, index, entries: grad.new_empty(entries, grad.shape[1]))
    op.register_autograd(backward, setup_context=setup_context)
