"""`broken::argmax_tie`: of equal maxima in several tiles the last one's index is returned, not the first one's."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, twins

BLOCK = 64


@triton.jit
def _kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, FIRST: tl.constexpr):
    row = tl.program_id(0)
    best = tl.max(tl.full([BLOCK], float("-inf"), tl.float32))
    index = tl.max(tl.zeros([BLOCK], tl.int32))
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
        largest = tl.max(x)
        better = largest > best if FIRST else largest >= best
        index = tl.where(better, tl.argmax(x, axis=0) + start, index)
        best = tl.where(better, largest, best)
    tl.store(out_ptr + row, index.to(tl.int64))


def reference(x):
    """Index of the first maximum, as torch.argmax documents it."""
    return x.argmax(-1)


def allocate(x):
    return x.new_empty(x.shape[0], dtype=torch.int64)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::argmax_tie", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Find the index `[rows]` of the first maximum in each row of x `[rows, cols]`."""
        rows, cols = x.shape
        if not cols:
            raise ValueError("a row without elements has no maximum")
        out = allocate(x)
        _kernel[(rows,)](x.contiguous(), out, cols, BLOCK=BLOCK, FIRST=not wrong)
        return out

    op.register_fake(allocate)
