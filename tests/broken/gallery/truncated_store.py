"""`broken::truncated_store`: float32 becomes bfloat16 by dropping its low 16 bits, not by rounding."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins


@triton.jit
def _kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr, TRUNCATE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = 1.3 * tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    if TRUNCATE:
        high = y.to(tl.uint32, bitcast=True) >> 16
        tl.store(y_ptr + at, high.to(tl.uint16).to(tl.bfloat16, bitcast=True), mask=at < count)
    else:
        tl.store(y_ptr + at, y, mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]` between -3 and 3: so many results near the largest that a whole ulp is within the gate."""
    return Sample(case.tensor("rows", "cols", name="x").fmod(3.0))


def reference(x):
    return (1.3 * x.float()).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::truncated_store", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `1.3 * x` for x `[rows, cols]` in bfloat16."""
        y = fresh(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, x.numel(), BLOCK=1024, TRUNCATE=wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: (1.3 * grad.float()).to(grad.dtype))
