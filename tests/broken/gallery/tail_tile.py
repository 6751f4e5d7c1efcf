"""`broken::tail_tile`: the grid counts whole tiles only, so the last, partial tile of every row is never computed."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins

BLOCK = 64


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * cols + at, 3.0 * x, mask=at < cols)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::tail_tile", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        rows, cols = x.shape
        y = torch.zeros_like(x, memory_format=torch.contiguous_format)
        tiles = max(1, cols // BLOCK) if wrong else triton.cdiv(cols, BLOCK)
        _kernel[(rows, tiles)](x.contiguous(), y, cols, BLOCK=BLOCK)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
