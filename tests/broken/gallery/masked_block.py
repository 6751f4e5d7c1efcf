"""K042: the first block of keys is masked, the running maximum is still -inf, and `exp(-inf + inf)` is NaN for good."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .masked_row import reference as masked_softmax
from .twins import fresh_rows, refuse_empty, save_inputs, twins


@triton.jit
def _kernel(x_ptr, v_ptr, out_ptr, cols, BLOCK: tl.constexpr, SAFE: tl.constexpr):
    row = tl.program_id(0)
    largest = float("-inf")
    total = 0.0
    weighted = 0.0
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
        v = tl.load(v_ptr + at, mask=at < cols, other=0.0)
        now = tl.maximum(largest, tl.max(x))
        shift = now
        if SAFE:
            shift = tl.where(now == float("-inf"), 0.0, now)
        weights = tl.exp(x - shift)
        rescale = tl.exp(largest - shift)
        total = total * rescale + tl.sum(weights)
        weighted = weighted * rescale + tl.sum(weights * v)
        largest = now
    if SAFE:
        total = tl.where(total == 0.0, 1.0, total)
    tl.store(out_ptr + row, weighted / total)


def samples(case: Case) -> Sample:
    """Draw scores x `[rows, cols]` and values v `[cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor("cols", name="v"))


def reference(x, v):
    return (masked_softmax(x) * v).sum(-1)


def backward(ctx, grad):
    x, v = ctx.saved_tensors
    weights = masked_softmax(x)
    mean = (weights * v).sum(-1, keepdim=True)
    return weights * (v - mean) * grad[:, None], (weights * grad[:, None]).sum(0)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::masked_block", reference=reference, samples=samples)
    def op(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Weigh v `[cols]` by the softmax of the rows of x `[rows, cols]`, giving `[rows]`; masked rows give zeros."""
        rows, cols = x.shape
        refuse_empty(cols)
        out = fresh_rows(x)
        _kernel[(rows,)](x.contiguous(), v.contiguous(), out, cols, BLOCK=16, SAFE=not wrong)
        return out

    op.register_fake(lambda x, v: fresh_rows(x))
    op.register_autograd(backward, setup_context=save_inputs)
