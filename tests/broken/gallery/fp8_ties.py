"""K089: a cast to fp8 by way of the bits adds half a step and cuts off, which rounds every tie away from zero."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, twins

LARGEST = 448.0


@triton.jit
def _kernel(x_ptr, q_ptr, count, BLOCK: tl.constexpr, TO_EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    x = tl.minimum(tl.maximum(x, -448.0), 448.0)
    bits = x.to(tl.int32, bitcast=True)
    half = 0x7FFFF + ((bits >> 20) & 1) if TO_EVEN else 0x80000
    normal = ((bits + half) & ~0xFFFFF).to(tl.float32, bitcast=True)
    # Numbers below are multiples of 2^-9, which the cast itself rounds.
    q = tl.where(tl.abs(x) < 0.015625, x, normal)
    tl.store(q_ptr + at, q.to(tl.float8e4nv), mask=at < count)


def reference(x):
    return x.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def golden(x):
    return x.clamp(-LARGEST, LARGEST)


def allocate(x):
    return torch.empty_like(x, dtype=torch.float8_e4m3fn, memory_format=torch.contiguous_format)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::fp8_ties", reference=reference, golden=golden, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Round x `[rows, cols]` to the nearest of float8_e4m3fn, ties to even, cut off at 448."""
        q = allocate(x)
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), q, x.numel(), BLOCK=1024, TO_EVEN=not wrong)
        return q

    op.register_fake(allocate)
