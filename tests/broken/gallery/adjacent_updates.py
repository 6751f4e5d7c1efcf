"""`broken::adjacent_updates`: an index that comes back later overwrites what it had, for only runs are added up."""

import torch
import triton
import triton.language as tl

import opcheck

from .first_index import allocate, look_up, reference, samples, setup_context
from .twins import twins


@triton.jit
def _grad_kernel(grad_ptr, index_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr, RUNS_ONLY: tl.constexpr):
    own = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    before = own < 0
    for row in range(rows):
        used = tl.load(index_ptr + row) == own
        grad = tl.load(grad_ptr + row * cols + at, mask=at < cols, other=0.0)
        if RUNS_ONLY:
            total = tl.where(used & (before == 0), 0.0, total)
        total = tl.where(used, total + grad, total)
        before = used
    tl.store(out_ptr + own * cols + at, total, mask=at < cols)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::adjacent_updates", reference=reference, samples=samples)
    def op(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Look up rows of table `[entries, cols]` by index `[rows]`, giving `[rows, cols]`."""
        return look_up(table, index, 0, table.shape[0])

    @torch.library.custom_op(f"{namespace}::adjacent_updates_backward", mutates_args=())
    def grad_table(grad: torch.Tensor, index: torch.Tensor, entries: int) -> torch.Tensor:
        rows, cols = grad.shape
        out = grad.new_empty(entries, cols)
        _grad_kernel[(entries,)](
            grad.contiguous(), index.contiguous(), out, rows, cols, BLOCK=triton.next_power_of_2(cols), RUNS_ONLY=wrong
        )
        return out

    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad_table(grad, index, ctx.entries), None

    op.register_fake(allocate)
    grad_table.register_fake(lambda grad, index, entries: grad.new_empty(entries, grad.shape[1]))
    op.register_autograd(backward, setup_context=setup_context)
