"""Cumulative sum along the last dimension: one Triton kernel for both directions, and its launch.

Forward: `y[i] = x[0] + ... + x[i]`. Backward: `dx[i] = dy[i] + ... + dy[last]`, the same scan from the other end.
A row is scanned tile by tile; the sum of the tiles so far is carried in float32, and each result is rounded once.
"""

import torch
import triton
import triton.language as tl

from .._layout import as_rows, check_inputs

MAX_BLOCK = 512


@triton.jit
def _scan_kernel(x_ptr, y_ptr, x_stride, cols, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * cols
    lanes = tl.arange(0, BLOCK)
    tiles = tl.cdiv(cols, BLOCK)
    carry = tl.sum(tl.zeros([BLOCK], tl.float32))
    for step in range(tiles):
        tile = tiles - 1 - step if REVERSE else step
        at = tile * BLOCK + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, carry + tl.cumsum(x, 0, reverse=REVERSE), mask=at < cols)
        carry += tl.sum(x)


def scan(x: torch.Tensor, reverse: bool) -> torch.Tensor:
    """Add up x `[..., cols]` along its last dimension, from its end where `reverse`; contiguous, in x's dtype."""
    check_inputs("cumsum", x=x)
    if x.dim() == 0:
        raise ValueError("cumsum: x is a single number, it should have a last dimension")
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    flat = as_rows(x)
    rows, cols = flat.shape
    with torch.cuda.device_of(x):
        _scan_kernel[(rows,)](
            flat, y, flat.stride(0), cols, REVERSE=reverse, BLOCK=min(triton.next_power_of_2(cols), MAX_BLOCK)
        )
    return y
