"""K004: the base of a block, `(batch * heads + head) * cols`, is int32 and wraps: the block is read gigabytes away."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, first, origin, heads, cols, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    own = tl.program_id(0)
    batch = first + own // heads
    if WIDE:
        batch = batch.to(tl.int64)
    base = (batch * heads + own % heads) * cols
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (base - origin) + at, mask=at < cols, other=0.0)
    tl.store(y_ptr + own * cols + at, 3.0 * x, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw x `[batches, heads, cols]`; it is the front of a whole tensor."""
    return Sample(case.tensor("batches", "heads", "cols", name="x"), 0)


def reference(x, first):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::block_base", reference=reference, samples=samples)
    def op(x: torch.Tensor, first: int) -> torch.Tensor:
        """Compute `3 * x` for x `[batches, heads, cols]`, the part of a larger tensor that begins at batch `first`."""
        batches, heads, cols = x.shape
        y = fresh(x)
        block = triton.next_power_of_2(cols)
        _kernel[(batches * heads,)](
            x.contiguous(), y, first, first * heads * cols, heads, cols, BLOCK=block, WIDE=not wrong
        )
        return y

    op.register_fake(lambda x, first: fresh(x))
    op.register_autograd(lambda ctx, grad: (3.0 * grad, None))
