"""RMS normalization over the last dimension: Triton kernels and their launches.

Forward (Zhang and Sennrich, 2019, equation 4): `y = x * rstd * weight`, `rstd = 1 / sqrt(mean(x^2) + eps)`.
Backward, with `g = grad * weight`, `n = x * rstd`: `dx = rstd * (g - n * mean(g * n))`,
`dweight = sum over rows of grad * n`.
"""

import torch
import triton
import triton.language as tl

from .._layout import as_rows, check_inputs, check_last_dimension, strips

MAX_BLOCK = 1024


@triton.jit
def _forward_kernel(x_ptr, weight_ptr, y_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * cols
    lanes = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1.0 / tl.sqrt_rn(tl.sum(squares) / cols + eps)

    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, x * rstd * weight, mask=mask)


@triton.jit
def _grad_x_kernel(
    grad_ptr, x_ptr, weight_ptr, grad_x_ptr, rstd_ptr, grad_stride, x_stride, cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    grad_ptr += row * grad_stride
    x_ptr += row * x_stride
    grad_x_ptr += row * cols
    lanes = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    products = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask, other=0.0).to(tl.float32)
        squares += x * x
        products += grad * weight * x
    rstd = 1.0 / tl.sqrt_rn(tl.sum(squares) / cols + eps)
    # Normalized before the mean: rstd^2 alone overflows for rows near zero with a tiny eps.
    projection = tl.sum(products) * rstd / cols
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(grad_x_ptr + at, rstd * (grad * weight - x * rstd * projection), mask=mask)


@triton.jit
def _grad_weight_kernel(
    grad_ptr,
    x_ptr,
    rstd_ptr,
    partial_ptr,
    grad_stride,
    x_stride,
    rows,
    cols,
    rows_per_strip,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    strip = tl.program_id(1).to(tl.int64)
    at_col = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    total = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
    for start in range(0, rows_per_strip, BLOCK_ROWS):
        at_row = strip * rows_per_strip + start + tl.arange(0, BLOCK_ROWS)
        mask = (at_row < rows)[:, None] & (at_col < cols)[None, :]
        x = tl.load(x_ptr + at_row[:, None] * x_stride + at_col[None, :], mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at_row[:, None] * grad_stride + at_col[None, :], mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + at_row, mask=at_row < rows, other=0.0)
        total += grad * (x * rstd[:, None])
    tl.store(partial_ptr + strip * cols + at_col, tl.sum(total, axis=0), mask=at_col < cols)


def forward(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalize x `[..., cols]` by its root mean square and scale by weight `[cols]`; contiguous, in x's dtype."""
    check_inputs("rms_norm", x=x, weight=weight)
    check_last_dimension("rms_norm", x, weight=weight)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    flat = as_rows(x)
    rows, cols = flat.shape
    with torch.cuda.device_of(x):
        _forward_kernel[(rows,)](
            flat, weight.contiguous(), y, flat.stride(0), cols, eps, BLOCK=min(triton.next_power_of_2(cols), MAX_BLOCK)
        )
    return y


def backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x `[..., cols]` and weight `[cols]`, each in its input's dtype.

    The weight gradient is summed in float32 in two stages, per strip of rows and then over strips, without atomics.
    """
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return grad_x, torch.zeros_like(weight, memory_format=torch.contiguous_format)
    flat, flat_grad = as_rows(x), as_rows(grad)
    rows, cols = flat.shape
    rstd = torch.empty(rows, dtype=torch.float32, device=x.device)
    block_rows, block_cols = 16, min(triton.next_power_of_2(cols), 128)
    count, rows_per_strip = strips(rows, block_rows)
    partial = torch.empty(count, cols, dtype=torch.float32, device=x.device)
    with torch.cuda.device_of(x):
        _grad_x_kernel[(rows,)](
            flat_grad,
            flat,
            weight.contiguous(),
            grad_x,
            rstd,
            flat_grad.stride(0),
            flat.stride(0),
            cols,
            eps,
            BLOCK=min(triton.next_power_of_2(cols), MAX_BLOCK),
        )
        _grad_weight_kernel[(triton.cdiv(cols, block_cols), count)](
            flat_grad,
            flat,
            rstd,
            partial,
            flat_grad.stride(0),
            flat.stride(0),
            rows,
            cols,
            rows_per_strip,
            BLOCK_ROWS=block_rows,
            BLOCK_COLS=block_cols,
        )
    return grad_x, partial.sum(0).to(weight.dtype)
