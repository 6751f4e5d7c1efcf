"""`broken::grad_doubled`: the gradient of the second factor is counted twice, as where two paths are added up."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins


@triton.jit
def _product_kernel(a_ptr, b_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, a * b, mask=at < count)


def samples(case: Case) -> Sample:
    """Draw a and b, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="a"), case.tensor("rows", "cols", name="b"))


def reference(a, b):
    return a * b


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::grad_doubled", reference=reference, samples=samples)
    def op(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Compute `a * b`, all `[rows, cols]`."""
        y = fresh(a)
        _product_kernel[(triton.cdiv(a.numel(), 1024),)](a.contiguous(), b.contiguous(), y, a.numel(), BLOCK=1024)
        return y

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad_b = grad * a
        return grad * b, grad_b + grad_b if wrong else grad_b

    op.register_fake(lambda a, b: fresh(a))
    op.register_autograd(backward, setup_context=save_inputs)
