"""Quantize rows to a grid by a scale of their own: one Triton kernel for integers and for 8-bit floats.

`scale = min(max|x|, clip) / largest`, `q = round(x / scale)`, cut off at `+-largest`: what `clip` leaves outside
saturates. A row of zeros, as padding tokens give, must not divide by 0: `max|x|` counts as `LEAST` at least.
"""

import math

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from ._layout import as_rows, check_inputs, check_last_dimension

MAX_BLOCK = 1024
LEAST = 2.0**-40  # below the smallest number of float16, and exact in every type


@triton.jit
def _quantize_kernel(
    x_ptr,
    q_ptr,
    scale_ptr,
    x_stride,
    cols,
    clip,
    LEAST: tl.constexpr,
    LARGEST: tl.constexpr,
    INTEGERS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    q_ptr += row * cols
    lanes = tl.arange(0, BLOCK)

    largest = tl.zeros([BLOCK], tl.float32)
    odd = tl.zeros([BLOCK], tl.int32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(x))
        odd |= (x != x).to(tl.int32)
    # tl.max and tl.maximum pass over NaN, and a row with a NaN would look healthy.
    widest = tl.minimum(tl.maximum(tl.max(largest), LEAST), clip)
    widest = tl.where(tl.max(odd) > 0, float("nan"), widest)
    # div_rn: the division that `/` compiles to is off by 2 ulp, and moves what is near a midpoint to its other side.
    scale = tl.div_rn(widest, LARGEST)
    tl.store(scale_ptr + row, scale)

    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        value = tl.div_rn(x, scale + tl.zeros([BLOCK], tl.float32))
        # Comparisons keep NaN, of which integers have none: it becomes 0, and the row's scale is NaN.
        value = tl.where(value > LARGEST, LARGEST, tl.where(value < -LARGEST, -LARGEST, value))
        if INTEGERS:
            value = tl.where(value == value, libdevice.rint(value), 0.0)
        tl.store(q_ptr + at, value.to(q_ptr.dtype.element_ty), mask=mask)


def quantize(
    op: str, x: torch.Tensor, clip: float | None, dtype: torch.dtype, largest: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantize x `[..., cols]` to numbers of `dtype` up to `largest`; return them and the scales `[..., 1]`.

    Raises:
        ValueError: `clip` is not positive, or x has no last dimension of at least 1.
    """
    check_inputs(op, x=x)
    check_last_dimension(op, x)
    if clip is not None and not clip >= LEAST:
        raise ValueError(f"{op}: clip is {clip}, it should be None or at least {LEAST}")
    q, scale = empty(x, dtype)
    if x.numel():
        flat = as_rows(x)
        rows, cols = flat.shape
        with torch.cuda.device_of(x):
            _quantize_kernel[(rows,)](
                flat,
                q,
                scale,
                flat.stride(0),
                cols,
                math.inf if clip is None else clip,
                LEAST=LEAST,
                LARGEST=largest,
                INTEGERS=not dtype.is_floating_point,
                BLOCK=min(triton.next_power_of_2(cols), MAX_BLOCK),
            )
    return q, scale


def empty(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate the numbers `[..., cols]` and the scales `[..., 1]` of x; as fakes they say the same."""
    q = torch.empty_like(x, dtype=dtype, memory_format=torch.contiguous_format)
    return q, x.new_empty(*x.shape[:-1], 1, dtype=torch.float32)
