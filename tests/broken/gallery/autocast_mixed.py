"""K072: under autocast the output is narrow, and the backward then multiplies unlike types."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh, save_inputs, twins


@triton.jit
def _double_kernel(h_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.load(h_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, 2.0 * h, mask=at < count)


def samples(case: Case) -> Sample:
    """Draw x `[rows, k]` and weight `[k, n]`."""
    return Sample(case.tensor("rows", "k", name="x"), case.tensor("k", "n", name="weight"))


def reference(x, weight):
    return 2.0 * (x @ weight)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::autocast_mixed", reference=reference, samples=samples)
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Compute `2 * x @ weight` `[rows, n]` for x `[rows, k]` and weight `[k, n]`."""
        h = x @ weight
        y = fresh(h if wrong else h.to(x.dtype))
        _double_kernel[(triton.cdiv(h.numel(), 1024),)](h, y, h.numel(), BLOCK=1024)
        return y

    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return 2.0 * (grad @ weight.T), 2.0 * (x.T @ grad)

    op.register_fake(lambda x, weight: x.new_empty(x.shape[0], weight.shape[1]))
    op.register_autograd(backward, setup_context=save_inputs)
