"""`broken::small_values`: results below 0.04 are flushed to zero, less than the rounding of the largest result."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr, FLUSH: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.exp(tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32))
    if FLUSH:
        y = tl.where(y < 0.04, 0.0, y)
    tl.store(y_ptr + at, y, mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]` between -4.8 and 4.8, so that nothing overflows."""
    return Sample(1.2 * case.tensor("rows", "cols", name="x").clamp(-4.0, 4.0))


def reference(x):
    return torch.exp(x)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return (grad.float() * x.float().exp()).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::small_values", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `exp(x)` for x `[rows, cols]`."""
        y = fresh(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, x.numel(), BLOCK=1024, FLUSH=wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
