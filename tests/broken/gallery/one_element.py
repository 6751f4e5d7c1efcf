"""`broken::one_element`: a single element, the first of the second tile in row 1, is scaled twice."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, twins

BLOCK = 64


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    y = 1.5 * x
    if TWICE:
        y = tl.where((row == 1) & (at == BLOCK), 1.5 * y, y)
    tl.store(y_ptr + row * cols + at, y, mask=at < cols)


def reference(x):
    return 1.5 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::one_element", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `1.5 * x` for x `[rows, cols]`."""
        rows, cols = x.shape
        y = fresh(x)
        _kernel[(rows, triton.cdiv(cols, BLOCK))](x.contiguous(), y, cols, BLOCK=BLOCK, TWICE=wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 1.5 * grad)
