"""`broken::list_gradient`: of a list of tensors the last one gets no gradient."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins


@triton.jit
def _kernel(a_ptr, b_ptr, c_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < count, other=0.0)
    b = tl.load(b_ptr + at, mask=at < count, other=0.0)
    c = tl.load(c_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, a + b + c, mask=at < count)


def samples(case: Case) -> Sample:
    """Draw three tensors `[rows, cols]`."""
    return Sample([case.tensor("rows", "cols", name=f"xs[{at}]") for at in range(3)])


def reference(xs):
    return xs[0] + xs[1] + xs[2]


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::list_gradient", reference=reference, samples=samples)
    def op(xs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Add three tensors `[rows, cols]`."""
        a, b, c = (x.contiguous() for x in xs)
        y = fresh(a)
        _kernel[(triton.cdiv(a.numel(), 1024),)](a, b, c, y, a.numel(), BLOCK=1024)
        return y

    op.register_fake(lambda xs: fresh(xs[0]))
    op.register_autograd(lambda ctx, grad: [grad.clone(), grad.clone(), None if wrong else grad.clone()])
