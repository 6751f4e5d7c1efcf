"""K047: a block of zeros, as padding tokens give, has the scale 0, and 0 / 0 is NaN."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, fresh_rows, twins

LEAST = 1e-10


@triton.jit
def _kernel(x_ptr, q_ptr, scale_ptr, cols, LEAST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(x)), LEAST) / 448.0
    tl.store(q_ptr + row * cols + at, x / scale, mask=at < cols)
    tl.store(scale_ptr + row, scale)


def reference(x):
    scale = x.abs().amax(-1).clamp(min=LEAST) / 448.0
    return x / scale[:, None], scale


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::zero_block", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scale each row of x `[rows, cols]` to the range of fp8, up to 448, and give the scales `[rows]`."""
        rows, cols = x.shape
        q, scale = fresh(x), fresh_rows(x)
        least = 0.0 if wrong else LEAST
        _kernel[(rows,)](x.contiguous(), q, scale, cols, LEAST=least, BLOCK=triton.next_power_of_2(cols))
        return q, scale

    op.register_fake(lambda x: (fresh(x), fresh_rows(x)))
