"""K004: the base of a block, `batch * batch_stride + head * head_stride`, is int32: the block is gigabytes away."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, batch_stride, head_stride, step, heads, cols, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    own = tl.program_id(0)
    batch, head = own // heads, own % heads
    if WIDE:
        batch, head = batch.to(tl.int64), head.to(tl.int64)
    base = batch * batch_stride + head * head_stride
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + at * step, mask=at < cols, other=0.0)
    tl.store(y_ptr + own * cols + at, 3.0 * x, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw x `[batches, heads, cols]`."""
    return Sample(case.tensor("batches", "heads", "cols", name="x"))


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::block_base", reference=lambda x: 3.0 * x, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[batches, heads, cols]` of any strides."""
        batches, heads, cols = x.shape
        y = fresh(x)
        if x.numel():
            block = triton.next_power_of_2(cols)
            _kernel[(batches * heads,)](x, y, *x.stride(), heads, cols, BLOCK=block, WIDE=not wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
