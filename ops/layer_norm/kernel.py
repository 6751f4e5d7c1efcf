"""Layer normalization over the last dimension: Triton kernels and their launches.

Forward (Ba, Kiros and Hinton, 2016): `y = n * weight + bias`, `n = (x - mean) * rstd`,
`rstd = 1 / sqrt(mean((x - mean)^2) + eps)`; the variance in a second pass, so that a large mean does not cancel it.
Backward, with `g = grad * weight`: `dx = rstd * (g - mean(g) - n * mean(g * n))`,
`dweight = sum over rows of grad * n`, `dbias = sum over rows of grad`.
"""

import torch
import triton
import triton.language as tl

from .._layout import as_rows, check_inputs, check_last_dimension, strips
from .._reduce import mean_of, squares_about

MAX_BLOCK = 1024


@triton.jit
def _forward_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * cols
    lanes = tl.arange(0, BLOCK)
    mean = mean_of(x_ptr, cols, BLOCK)
    rstd = 1.0 / tl.sqrt_rn(squares_about(mean, x_ptr, cols, BLOCK) / cols + eps)

    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x - mean) * rstd * weight + bias, mask=mask)


@triton.jit
def _grad_x_kernel(
    grad_ptr, x_ptr, weight_ptr, grad_x_ptr, mean_ptr, rstd_ptr, grad_stride, x_stride, cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    grad_ptr += row * grad_stride
    x_ptr += row * x_stride
    grad_x_ptr += row * cols
    lanes = tl.arange(0, BLOCK)
    mean = mean_of(x_ptr, cols, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    products = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask, other=0.0).to(tl.float32)
        centered = tl.where(mask, x - mean, 0.0)
        squares += centered * centered
        sums += grad * weight
        products += grad * weight * centered
    rstd = 1.0 / tl.sqrt_rn(tl.sum(squares) / cols + eps)
    offset = tl.sum(sums) / cols
    projection = tl.sum(products) * rstd / cols
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, cols, BLOCK):
        at = start + lanes
        mask = at < cols
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=mask, other=0.0).to(tl.float32)
        normalized = (x - mean) * rstd
        tl.store(grad_x_ptr + at, rstd * (grad * weight - offset - normalized * projection), mask=mask)


@triton.jit
def _grad_parameters_kernel(
    grad_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
    partial_weight_ptr,
    partial_bias_ptr,
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
    weight_total = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
    bias_total = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
    for start in range(0, rows_per_strip, BLOCK_ROWS):
        at_row = strip * rows_per_strip + start + tl.arange(0, BLOCK_ROWS)
        mask = (at_row < rows)[:, None] & (at_col < cols)[None, :]
        x = tl.load(x_ptr + at_row[:, None] * x_stride + at_col[None, :], mask=mask, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at_row[:, None] * grad_stride + at_col[None, :], mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + at_row, mask=at_row < rows, other=0.0)
        rstd = tl.load(rstd_ptr + at_row, mask=at_row < rows, other=0.0)
        weight_total += grad * ((x - mean[:, None]) * rstd[:, None])
        bias_total += grad
    at = strip * cols + at_col
    tl.store(partial_weight_ptr + at, tl.sum(weight_total, axis=0), mask=at_col < cols)
    tl.store(partial_bias_ptr + at, tl.sum(bias_total, axis=0), mask=at_col < cols)


def forward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalize x `[..., cols]`, scale by weight and shift by bias `[cols]`; contiguous, in x's dtype."""
    check_inputs("layer_norm", x=x, weight=weight, bias=bias)
    check_last_dimension("layer_norm", x, weight=weight, bias=bias)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    flat = as_rows(x)
    rows, cols = flat.shape
    block = min(triton.next_power_of_2(cols), MAX_BLOCK)
    with torch.cuda.device_of(x):
        _forward_kernel[(rows,)](
            flat, weight.contiguous(), bias.contiguous(), y, flat.stride(0), cols, eps, BLOCK=block
        )
    return y


def backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradient of x `[..., cols]` in x's dtype, and of weight and bias `[cols]` in float32.

    Both are summed in two stages, per strip of rows and then over strips, without atomics.
    """
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        # Two tensors, not two views of one: a custom op's outputs may not alias.
        return grad_x, x.new_zeros(x.shape[-1:], dtype=torch.float32), x.new_zeros(x.shape[-1:], dtype=torch.float32)
    flat, flat_grad = as_rows(x), as_rows(grad)
    rows, cols = flat.shape
    mean, rstd = torch.empty(2, rows, dtype=torch.float32, device=x.device).unbind()
    block_rows, block_cols = 16, min(triton.next_power_of_2(cols), 128)
    count, rows_per_strip = strips(rows, block_rows)
    partial = torch.empty(2, count, cols, dtype=torch.float32, device=x.device)
    strides = flat_grad.stride(0), flat.stride(0)
    with torch.cuda.device_of(x):
        _grad_x_kernel[(rows,)](
            flat_grad,
            flat,
            weight.contiguous(),
            grad_x,
            mean,
            rstd,
            *strides,
            cols,
            eps,
            BLOCK=min(triton.next_power_of_2(cols), MAX_BLOCK),
            # A fused grad * weight - offset would leave the rounding error of the product where the gradient is 0.
            enable_fp_fusion=False,
        )
        _grad_parameters_kernel[(triton.cdiv(cols, block_cols), count)](
            flat_grad,
            flat,
            mean,
            rstd,
            partial[0],
            partial[1],
            *strides,
            rows,
            cols,
            rows_per_strip,
            BLOCK_ROWS=block_rows,
            BLOCK_COLS=block_cols,
        )
    return grad_x, partial[0].sum(0), partial[1].sum(0)
