"""K090: zero points are repacked as one less, in 4 bits, and 1 is added again without them: 0 becomes 16."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import twins


@triton.jit
def _kernel(q_ptr, zero_ptr, scale_ptr, out_ptr, cols, BLOCK: tl.constexpr, WRAP: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    q = tl.load(q_ptr + row * cols + at, mask=mask, other=0)
    repacked = (tl.load(zero_ptr + at, mask=mask, other=0) - 1) & 0xF
    zero = (repacked + 1) & 0xF if WRAP else repacked + 1
    scale = tl.load(scale_ptr + at, mask=mask, other=0.0)
    tl.store(out_ptr + row * cols + at, (q - zero).to(tl.float32) * scale, mask=mask)


def samples(case: Case) -> Sample:
    """Draw q `[rows, cols]` and zero `[cols]` from 0 to 15, and scale `[cols]`."""
    q, zero = case.integers(0, 16, "rows", "cols", name="q"), case.integers(0, 16, "cols", name="zero")
    return Sample(q, zero, case.tensor("cols", name="scale"))


def reference(q, zero, scale):
    return (q - zero) * scale


def setup_context(ctx, inputs, output):
    q, zero, _ = inputs
    ctx.save_for_backward(q, zero)


def backward(ctx, grad):
    q, zero = ctx.saved_tensors
    return None, None, (grad * (q - zero)).sum(0)


def allocate(q, zero, scale):
    return scale.new_empty(q.shape)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::zero_point", reference=reference, samples=samples)
    def op(q: torch.Tensor, zero: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Dequantize `(q - zero) * scale` for 4-bit q `[rows, cols]`, zero and scale `[cols]`."""
        out = allocate(q, zero, scale)
        rows, cols = q.shape
        block = triton.next_power_of_2(max(cols, 1))
        _kernel[(rows,)](q.contiguous(), zero.contiguous(), scale.contiguous(), out, cols, BLOCK=block, WRAP=not wrong)
        return out

    op.register_fake(allocate)
    op.register_autograd(backward, setup_context=setup_context)
