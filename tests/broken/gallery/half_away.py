"""K089: 0.5 is rounded to 1 and 2.5 to 3, half away from zero and not to even."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, twins


@triton.jit
def _kernel(x_ptr, q_ptr, count, BLOCK: tl.constexpr, TO_EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    below = tl.floor(tl.abs(x))
    part = tl.abs(x) - below
    odd = tl.floor(below * 0.5) * 2.0 != below
    up = (part > 0.5) | ((part == 0.5) & odd) if TO_EVEN else part >= 0.5
    rounded = tl.minimum(below + up.to(tl.float32), 127.0)
    tl.store(q_ptr + at, tl.where(x < 0, -rounded, rounded).to(tl.int8), mask=at < count)


def reference(x):
    return x.round().clamp(-127.0, 127.0).to(torch.int8)


def allocate(x):
    return torch.empty_like(x, dtype=torch.int8, memory_format=torch.contiguous_format)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::half_away", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Round x `[rows, cols]` to the nearest of -127 to 127, ties to even."""
        q = allocate(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), q, x.numel(), BLOCK=1024, TO_EVEN=not wrong)
        return q

    op.register_fake(allocate)
