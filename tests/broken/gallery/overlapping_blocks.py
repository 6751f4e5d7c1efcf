"""K091: blocks of 16 elements do not end where their group does, and overlap the next group's, of another scale."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import twins

BLOCK = 16


@triton.jit
def _kernel(q_ptr, scale_ptr, out_ptr, size, BLOCK: tl.constexpr, ENDS: tl.constexpr):
    group = tl.program_id(0)
    inside = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = group * size + inside
    mask = inside < size if ENDS else at < tl.num_programs(0) * size
    q = tl.load(q_ptr + at, mask=mask, other=0).to(tl.float32)
    tl.store(out_ptr + at, q * tl.load(scale_ptr + group), mask=mask)


def samples(case: Case) -> Sample:
    """Draw q `[groups, size]` from -127 to 127 and scale `[groups]`."""
    return Sample(case.integers(-127, 128, "groups", "size", name="q"), case.tensor("groups", name="scale"))


def reference(q, scale):
    return q * scale[:, None]


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, grad):
    (q,) = ctx.saved_tensors
    return None, (grad * q).sum(1)


def allocate(q, scale):
    return scale.new_empty(q.shape)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::overlapping_blocks", reference=reference, samples=samples)
    def op(q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Dequantize groups of q `[groups, size]`, each by its own of scale `[groups]`."""
        out = allocate(q, scale)
        groups, size = q.shape
        grid = (groups, triton.cdiv(size, BLOCK))
        _kernel[grid](q.contiguous(), scale.contiguous(), out, size, BLOCK=BLOCK, ENDS=not wrong)
        return out

    op.register_fake(allocate)
    op.register_autograd(backward, setup_context=setup_context)
