"""`broken::swapped_gradients`: gradients are returned in the wrong order, so x gets the None meant for the table."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, table_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    table = tl.load(table_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, x * table, mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x and table, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("rows", "cols", name="table"))


def reference(x, table):
    return x * table


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::swapped_gradients", reference=reference, samples=samples)
    def op(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """Compute `x * table`, all `[rows, cols]`; the table, as of cosines, gets no gradient."""
        y = fresh(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), table.contiguous(), y, x.numel(), BLOCK=1024)
        return y

    def backward(ctx, grad):
        _, table = ctx.saved_tensors
        gradients = grad * table, None
        return gradients[::-1] if wrong else gradients

    op.register_fake(lambda x, table: fresh(x))
    op.register_autograd(backward, setup_context=save_inputs)
