"""`broken::scatter_store`: rows are scattered by a load, an addition and a store where only an atomic loses none."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import refuse_empty, twins


@triton.jit
def _kernel(src_ptr, index_ptr, out_ptr, cols, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    src = tl.load(src_ptr + row * cols + at, mask=at < cols, other=0.0)
    place = out_ptr + tl.load(index_ptr + row) * cols + at
    if ATOMIC:
        tl.atomic_add(place, src, mask=at < cols, sem="relaxed")
    else:
        tl.store(place, tl.load(place, mask=at < cols, other=0.0) + src, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw base `[entries, cols]`, src `[rows, cols]` and index `[rows]`; of 5 rows for 4 entries two meet."""
    base, src = case.tensor("entries", "cols", name="base"), case.tensor("rows", "cols", name="src")
    return Sample(base, case.integers(0, max(1, case.dims["entries"]), "rows", name="index"), src)


def reference(base, index, src):
    return base.index_add(0, index, src)


def save_index(ctx, inputs, output):
    ctx.save_for_backward(inputs[1])


def backward(ctx, grad):
    (index,) = ctx.saved_tensors
    return grad, None, grad[index]


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::scatter_store", reference=reference, samples=samples)
    def op(base: torch.Tensor, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
        """Add src `[rows, cols]` to a copy of base `[entries, cols]` at the rows index `[rows]`."""
        refuse_empty(base.shape[0])
        (rows, cols), out = src.shape, base.clone(memory_format=torch.contiguous_format)
        block = triton.next_power_of_2(max(cols, 1))
        _kernel[(rows,)](src.contiguous(), index.contiguous(), out, cols, BLOCK=block, ATOMIC=not wrong)
        return out

    op.register_fake(lambda base, index, src: torch.empty_like(base, memory_format=torch.contiguous_format))
    op.register_autograd(backward, setup_context=save_index)
