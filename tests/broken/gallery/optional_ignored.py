"""`broken::optional_ignored`: an optional bias is accepted and never added."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, twins


@triton.jit
def _kernel(x_ptr, bias_ptr, y_ptr, cols, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    y = 3.0 * tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    if HAS_BIAS:
        y += tl.load(bias_ptr + at, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, y, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]` and bias `[cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), bias=case.tensor("cols", name="bias"))


def reference(x, bias=None):
    return 3.0 * x if bias is None else 3.0 * x + bias


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::optional_ignored", reference=reference, samples=samples)
    def op(x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Compute `3 * x + bias` for x `[rows, cols]` and bias `[cols]` or None."""
        rows, cols = x.shape
        y = fresh(x)
        added = bias is not None and not wrong
        operand = bias.contiguous() if added else x
        _kernel[(rows,)](x.contiguous(), operand, y, cols, BLOCK=triton.next_power_of_2(cols), HAS_BIAS=added)
        return y

    op.register_fake(lambda x, bias=None: fresh(x))
    op.register_autograd(lambda ctx, grad: (3.0 * grad, grad.sum(0)))
