"""`broken::scale_rounded`: a row is divided by its scale rounded to bfloat16, though the scale given is exact."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

import opcheck

from .half_away import allocate
from .twins import draw_x, fresh_rows, row_shape, twins

LEAST = 2.0**-40


@triton.jit
def _kernel(x_ptr, q_ptr, scale_ptr, cols, LEAST: tl.constexpr, BLOCK: tl.constexpr, NARROW: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(x)), LEAST), 127.0)
    tl.store(scale_ptr + row, scale)
    if NARROW:
        scale = scale.to(tl.bfloat16).to(tl.float32)
    q = libdevice.rint(tl.div_rn(x, scale + tl.zeros([BLOCK], tl.float32)))
    tl.store(q_ptr + row * cols + at, tl.minimum(tl.maximum(q, -127.0), 127.0).to(tl.int8), mask=at < cols)


def golden(x):
    scale = x.abs().amax(-1).clamp(min=LEAST) / 127.0
    return x / scale[:, None], scale


def reference(x):
    value, scale = golden(x)
    return value.round().clamp(-127.0, 127.0).to(torch.int8), scale


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::scale_rounded", reference=reference, golden=golden, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Quantize rows of x `[rows, cols]` to -127 to 127 by their largest magnitudes; give the scales `[rows]`."""
        rows, cols = row_shape(x)
        q, scale = allocate(x), fresh_rows(x)
        block = triton.next_power_of_2(cols)
        _kernel[(rows,)](x.contiguous(), q, scale, cols, LEAST=LEAST, BLOCK=block, NARROW=wrong)
        return q, scale

    op.register_fake(lambda x: (allocate(x), fresh_rows(x)))
