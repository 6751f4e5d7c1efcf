"""`broken::wrapping_cast`: a number beyond 127 wraps around to a negative one, for it is clamped from below only."""

import torch
import triton
import triton.language as tl

import opcheck

from .half_away import allocate
from .twins import draw_x, twins

FAR = 2.0**24  # beyond it a cast to int32 has no meaning either


@triton.jit
def _kernel(x_ptr, q_ptr, count, highest, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    clamped = tl.minimum(tl.maximum(x, -128.0), highest)
    tl.store(q_ptr + at, clamped.to(tl.int32).to(tl.int8), mask=at < count)


def reference(x):
    return x.clamp(-128.0, 127.0).to(torch.int8)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::wrapping_cast", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Cut x `[rows, cols]` off to an integer from -128 to 127."""
        q = allocate(x)
        highest = FAR if wrong else 127.0
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), q, x.numel(), highest, BLOCK=1024)
        return q

    op.register_fake(allocate)
