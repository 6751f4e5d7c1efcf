"""`broken::tile_edge`: beyond the first of its tiles, which no contract names, the grid counts whole ones only."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins

TILE = 512


@triton.jit
def _kernel(x_ptr, y_ptr, cols, TILE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * cols + at, 3.0 * x, mask=at < cols)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::tile_edge", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        rows, cols = x.shape
        y = torch.zeros_like(x, memory_format=torch.contiguous_format)
        tiles = max(1, cols // TILE) if wrong else triton.cdiv(cols, TILE)
        _kernel[(rows, tiles)](x.contiguous(), y, cols, TILE=TILE)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
