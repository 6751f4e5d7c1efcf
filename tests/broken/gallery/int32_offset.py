"""K003: the offset of a token, `position * cols`, wraps in int32 and points at another place of the same buffer."""

import torch
import triton
import triton.language as tl

import opcheck
from opcheck import Case, Sample

from .twins import refuse_empty, twins

TOKENS = 3


@triton.jit
def _kernel(ring_ptr, y_ptr, first, size, cols, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    token = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    position = first + token
    if WIDE:
        position = position.to(tl.int64)
    place = (position * cols + at) % size
    y = tl.load(ring_ptr + place, mask=at < cols, other=0.0)
    tl.store(y_ptr + token * cols + at, y, mask=at < cols)


def samples(case: Case) -> Sample:
    """Draw a ring `[slots, cols]`; the window starts with the sequence's first token."""
    return Sample(case.tensor("slots", "cols", name="ring"), 0)


def reference(ring, first):
    return ring[(first + torch.arange(TOKENS)) % ring.shape[0]]


def setup_context(ctx, inputs, output):
    ring, ctx.first = inputs
    ctx.shape = ring.shape


def backward(ctx, grad):
    slots = (ctx.first + torch.arange(TOKENS)) % ctx.shape[0]
    return grad.new_zeros(ctx.shape).index_add_(0, slots, grad), None


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::int32_offset", reference=reference, samples=samples)
    def op(ring: torch.Tensor, first: int) -> torch.Tensor:
        """Read three tokens, giving `[3, cols]`, from `first` on, of which ring `[slots, cols]` holds the last ones."""
        slots, cols = ring.shape
        refuse_empty(slots, cols)
        y = ring.new_empty(TOKENS, cols)
        block = triton.next_power_of_2(cols)
        _kernel[(TOKENS,)](ring.contiguous(), y, first, slots * cols, cols, BLOCK=block, WIDE=not wrong)
        return y

    op.register_fake(lambda ring, first: ring.new_empty(TOKENS, ring.shape[1]))
    op.register_autograd(backward, setup_context=setup_context)
