"""`broken::product_rounding`: bfloat16 results halfway between two neighbours go away from zero, not to even."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, count, BLOCK: tl.constexpr, TO_EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    y = x * tl.load(w_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    if TO_EVEN:
        tl.store(y_ptr + at, y, mask=at < count)
    else:
        high = (y.to(tl.uint32, bitcast=True) + 0x8000) >> 16
        tl.store(y_ptr + at, high.to(tl.uint16).to(tl.bfloat16, bitcast=True), mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x and w, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("rows", "cols", name="w"))


def reference(x, w):
    return x * w


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::product_rounding", reference=reference, samples=samples)
    def op(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """Compute `x * w` for x and w `[rows, cols]` in bfloat16."""
        y = fresh(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        _kernel[grid](x.contiguous(), w.contiguous(), y, x.numel(), BLOCK=1024, TO_EVEN=not wrong)
        return y

    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return (grad * w).contiguous(), (grad * x).contiguous()

    op.register_fake(lambda x, w: fresh(x))
    op.register_autograd(backward, setup_context=save_inputs)
