"""`broken::long_part`: of a part that is longer than two tiles the rest is not summed."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import twins

TILE = 64


@triton.jit
def _kernel(x_ptr, offsets_ptr, out_ptr, most, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    first = tl.load(offsets_ptr + part)
    end = tl.load(offsets_ptr + part + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, most, BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < end, other=0.0)
    tl.store(out_ptr + part, tl.sum(total))


def samples(case: Case) -> Sample:
    """Draw x `[length]` and offsets `[parts + 1]` into it."""
    return Sample(
        case.tensor("length", name="x"), case.offsets(case.dims["length"], case.dims["parts"], name="offsets")
    )


def reference(x, offsets):
    return torch.stack([part.sum() for part in x.tensor_split(offsets[1:-1].long().cpu())])


def allocate(x, offsets):
    return x.new_empty(offsets.shape[0] - 1)


def setup_context(ctx, inputs, output):
    x, offsets = inputs
    ctx.length = x.shape[0]
    ctx.save_for_backward(offsets)


def backward(ctx, grad):
    (offsets,) = ctx.saved_tensors
    return grad.repeat_interleave(offsets.diff().long(), output_size=ctx.length), None


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::long_part", reference=reference, samples=samples)
    def op(x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Sum the parts `[parts]` of x `[length]` between offsets `[parts + 1]`."""
        if offsets.shape[0] < 2:
            raise ValueError("there should be at least one part")
        out = allocate(x, offsets)
        most = 2 * TILE if wrong else x.shape[0]
        _kernel[(out.shape[0],)](x.contiguous(), offsets.contiguous(), out, most, BLOCK=TILE)
        return out

    op.register_fake(allocate)
    op.register_autograd(backward, setup_context=setup_context)
