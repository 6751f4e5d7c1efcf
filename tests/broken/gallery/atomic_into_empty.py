"""K051: every program adds its part of a sum, by an atomic, to what `torch.empty` happened to hold."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import refuse_empty, save_shape, twins


@triton.jit
def _kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + at, mask=at < count, other=0.0)), sem="relaxed")


def samples(case: Case) -> Sample:
    """Draw x `[count]`."""
    return Sample(case.tensor("count", name="x"))


def reference(x):
    return x.sum(0, keepdim=True)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::atomic_into_empty", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Sum x `[count]`, giving `[1]`."""
        refuse_empty(x.numel())
        out = x.new_empty(1) if wrong else x.new_zeros(1)
        _kernel[(triton.cdiv(x.numel(), 64),)](x.contiguous(), out, x.numel(), BLOCK=64)
        return out

    op.register_fake(lambda x: x.new_empty(1))
    op.register_autograd(lambda ctx, grad: grad.expand(ctx.shape).clone(), setup_context=save_shape)
