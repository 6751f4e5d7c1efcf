"""`broken::empty_mask`: the mean over no element at all is 0 / 0."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import fresh_rows, row_shape, twins


@triton.jit
def _kernel(x_ptr, mask_ptr, out_ptr, cols, fewest, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    kept = tl.load(mask_ptr + row * cols + at, mask=at < cols, other=0) != 0
    x = tl.load(x_ptr + row * cols + at, mask=kept, other=0.0)
    count = tl.sum(kept.to(tl.int32)).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x) / tl.maximum(count, fewest))


def samples(case: Case) -> Sample:
    """Draw x and mask, both `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"), case.booleans("rows", "cols", name="mask"))


def reference(x, mask):
    """Mean of the elements under the mask; 0 where there is none."""
    return torch.where(mask, x, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)


def setup_context(ctx, inputs, output):
    _, mask = inputs
    ctx.save_for_backward(mask)


def backward(ctx, grad):
    (mask,) = ctx.saved_tensors
    return mask * (grad / mask.sum(-1).clamp(min=1))[:, None], None


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::empty_mask", reference=reference, samples=samples)
    def op(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute the mean `[rows]` of the elements of x `[rows, cols]` that the mask `[rows, cols]` keeps."""
        rows, cols = row_shape(x)
        out = fresh_rows(x)
        fewest = 0.0 if wrong else 1.0
        block = triton.next_power_of_2(cols)
        _kernel[(rows,)](x.contiguous(), mask.contiguous(), out, cols, fewest, BLOCK=block)
        return out

    op.register_fake(lambda x, mask: fresh_rows(x))
    op.register_autograd(backward, setup_context=setup_context)
