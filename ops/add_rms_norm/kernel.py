"""Residual addition and RMS normalization of the sum, fused: Triton kernels and their launches.

Forward: `total = x + residual`, rounded once to the dtype of both as the unfused layers would, then (Zhang and
Sennrich, 2019, equation 4) `normed = total * rstd * weight`, `rstd = 1 / sqrt(mean(total^2) + eps)`.
Backward, with `g = dnormed * weight`, `n = total * rstd`: `dx = dresidual = dtotal + rstd * (g - n * mean(g * n))`,
`dweight = sum over rows of dnormed * n`.
"""

import torch
import triton
import triton.language as tl

from .._layout import as_rows, check_inputs, check_last_dimension, strips

MAX_BLOCK = 1024


@triton.jit
def _forward_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    normed_ptr,
    total_ptr,
    x_stride,
    residual_stride,
    cols,
    eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    residual_ptr += row * residual_stride
    normed_ptr += row * cols
    total_ptr += row * cols
    lanes = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        residual = tl.load(residual_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        rounded = (x + residual).to(total_ptr.dtype.element_ty)
        tl.store(total_ptr + at, rounded, mask=at < cols)
        total = rounded.to(tl.float32)
        squares += total * total
    rstd = 1.0 / tl.sqrt_rn(tl.sum(squares) / cols + eps)

    # Added again: a load of total could pass the store of another thread of this program.
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        residual = tl.load(residual_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        total = (x + residual).to(total_ptr.dtype.element_ty).to(tl.float32)
        tl.store(normed_ptr + at, total * rstd * weight, mask=at < cols)


@triton.jit
def _grad_x_kernel(
    grad_normed_ptr,
    grad_total_ptr,
    total_ptr,
    weight_ptr,
    grad_x_ptr,
    rstd_ptr,
    grad_normed_stride,
    grad_total_stride,
    cols,
    eps,
    HAS_GRAD_TOTAL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    grad_normed_ptr += row * grad_normed_stride
    total_ptr += row * cols
    grad_x_ptr += row * cols
    lanes = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    products = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        total = tl.load(total_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        grad = tl.load(grad_normed_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        squares += total * total
        products += grad * weight * total
    rstd = 1.0 / tl.sqrt_rn(tl.sum(squares) / cols + eps)
    # Normalized before the mean: rstd^2 alone overflows for rows near zero with a tiny eps.
    projection = tl.sum(products) * rstd / cols
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        total = tl.load(total_ptr + at, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_normed_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask, other=0.0).to(tl.float32)
        grad_x = rstd * (grad * weight - total * rstd * projection)
        if HAS_GRAD_TOTAL:
            grad_x += tl.load(grad_total_ptr + row * grad_total_stride + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(grad_x_ptr + at, grad_x, mask=mask)


@triton.jit
def _grad_weight_kernel(
    grad_ptr,
    total_ptr,
    rstd_ptr,
    partial_ptr,
    grad_stride,
    rows,
    cols,
    rows_per_strip,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    strip = tl.program_id(1).to(tl.int64)
    at_col = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    sums = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
    for start in range(0, rows_per_strip, BLOCK_ROWS):
        at_row = strip * rows_per_strip + start + tl.arange(0, BLOCK_ROWS)
        mask = (at_row < rows)[:, None] & (at_col < cols)[None, :]
        total = tl.load(total_ptr + at_row[:, None] * cols + at_col[None, :], mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at_row[:, None] * grad_stride + at_col[None, :], mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + at_row, mask=at_row < rows, other=0.0)
        sums += grad * (total * rstd[:, None])
    tl.store(partial_ptr + strip * cols + at_col, tl.sum(sums, axis=0), mask=at_col < cols)


def forward(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the normalized sum and the sum of x and residual `[..., cols]`, both contiguous, in their common dtype."""
    check_inputs("add_rms_norm", x=x, residual=residual, weight=weight)
    check_last_dimension("add_rms_norm", x, weight=weight)
    if x.shape != residual.shape or x.dtype != residual.dtype:
        raise ValueError(
            f"add_rms_norm: x {x.dtype} {list(x.shape)} and residual {residual.dtype} {list(residual.shape)} should be "
            "alike"
        )
    normed, total = (torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(2))
    if x.numel() == 0:
        return normed, total
    flat, flat_residual = as_rows(x), as_rows(residual)
    rows, cols = flat.shape
    with torch.cuda.device_of(x):
        _forward_kernel[(rows,)](
            flat,
            flat_residual,
            weight.contiguous(),
            normed,
            total,
            flat.stride(0),
            flat_residual.stride(0),
            cols,
            eps,
            BLOCK=min(triton.next_power_of_2(cols), MAX_BLOCK),
        )
    return normed, total


def backward(
    grad_normed: torch.Tensor,
    grad_total: torch.Tensor | None,
    total: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradient of x, which is residual's too, `[..., cols]`, and of weight `[cols]`, in their dtypes.

    `total` is the contiguous one that forward returned; a `grad_total` of None is zero. The weight gradient is summed
    in float32 in two stages, per strip of rows and then over strips, without atomics.
    """
    grad_x = torch.empty_like(total, memory_format=torch.contiguous_format)
    if total.numel() == 0:
        return grad_x, torch.zeros_like(weight, memory_format=torch.contiguous_format)
    flat_grad, flat = as_rows(grad_normed), as_rows(total)
    flat_grad_total = None if grad_total is None else as_rows(grad_total)
    rows, cols = flat.shape
    rstd = torch.empty(rows, dtype=torch.float32, device=total.device)
    block_rows, block_cols = 16, min(triton.next_power_of_2(cols), 128)
    count, rows_per_strip = strips(rows, block_rows)
    partial = torch.empty(count, cols, dtype=torch.float32, device=total.device)
    with torch.cuda.device_of(total):
        _grad_x_kernel[(rows,)](
            flat_grad,
            flat_grad_total,
            flat,
            weight.contiguous(),
            grad_x,
            rstd,
            flat_grad.stride(0),
            0 if flat_grad_total is None else flat_grad_total.stride(0),
            cols,
            eps,
            HAS_GRAD_TOTAL=flat_grad_total is not None,
            BLOCK=min(triton.next_power_of_2(cols), MAX_BLOCK),
        )
        _grad_weight_kernel[(triton.cdiv(cols, block_cols), count)](
            flat_grad,
            flat,
            rstd,
            partial,
            flat_grad.stride(0),
            rows,
            cols,
            rows_per_strip,
            BLOCK_ROWS=block_rows,
            BLOCK_COLS=block_cols,
        )
    return grad_x, partial.sum(0).to(weight.dtype)
