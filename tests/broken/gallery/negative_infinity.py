"""`broken::negative_infinity`: -Inf counts as finite, for only NaN and +Inf are looked for."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, twins


@triton.jit
def _kernel(x_ptr, y_ptr, lowest, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, (x < float("inf")) & (x >= lowest), mask=at < count)


def allocate(x):
    return torch.empty_like(x, dtype=torch.bool, memory_format=torch.contiguous_format)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::negative_infinity", reference=torch.isfinite, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Say which elements of x `[rows, cols]` are finite."""
        y = allocate(x)
        lowest = float("-inf") if wrong else torch.finfo(x.dtype).min
        _kernel[(triton.cdiv(x.numel(), 1024),)](x.contiguous(), y, lowest, x.numel(), BLOCK=1024)
        return y

    op.register_fake(allocate)
