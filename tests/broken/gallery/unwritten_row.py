"""`broken::unwritten_row`: the rows of the last, partial block of rows are never stored into their `torch.empty`."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins

BLOCK_ROWS = 8


@triton.jit
def _kernel(x_ptr, y_ptr, rows, cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    row = (tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    col = tl.arange(0, BLOCK_COLS)[None, :]
    mask = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * cols + col, mask=mask, other=0.0)
    tl.store(y_ptr + row * cols + col, 3.0 * x, mask=mask)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::unwritten_row", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        blocks = max(1, rows // BLOCK_ROWS) if wrong else triton.cdiv(rows, BLOCK_ROWS)
        _kernel[(blocks,)](
            x.contiguous(), y, rows, cols, BLOCK_ROWS=BLOCK_ROWS, BLOCK_COLS=triton.next_power_of_2(cols)
        )
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
