"""Variance over the last dimension: Triton kernels and their launches.

Forward: `sum((x - mean)^2) / (cols - correction)`, the mean in a first pass, so that a large one does not cancel it.
Backward: `dx = 2 / (cols - correction) * (x - mean) * grad`, with the mean computed again. The divisor is at least 0,
as torch.var has it: a row of no more elements than the correction has 0 / 0.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs, check_last_dimension, over_rows
from .._reduce import mean_of, squares_about

MAX_BLOCK = 1024


@triton.jit
def _forward_kernel(x_ptr, out_ptr, x_stride, cols, divisor, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    mean = mean_of(x_ptr, cols, BLOCK)
    tl.store(out_ptr + row, squares_about(mean, x_ptr, cols, BLOCK) / divisor)


@triton.jit
def _backward_kernel(grad_ptr, x_ptr, grad_x_ptr, grad_stride, x_stride, cols, divisor, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    grad_x_ptr += row * cols
    mean = mean_of(x_ptr, cols, BLOCK)
    factor = 2.0 * tl.load(grad_ptr + row * grad_stride).to(tl.float32) / divisor
    lanes = tl.arange(0, BLOCK)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        tl.store(grad_x_ptr + at, factor * (x - mean), mask=at < cols)


def forward(x: torch.Tensor, correction: int) -> torch.Tensor:
    """Return the variance `[...]` of x `[..., cols]`, in x's dtype."""
    _check(x, correction)
    out = x.new_empty(x.shape[:-1])
    return over_rows(_forward_kernel, x, out, _divisor(x, correction), most=MAX_BLOCK)


def backward(grad: torch.Tensor, x: torch.Tensor, correction: int) -> torch.Tensor:
    """Return the gradient of x `[..., cols]` from the upstream gradient `[...]`, in x's dtype."""
    return over_rows(
        _backward_kernel,
        x,
        torch.empty_like(x, memory_format=torch.contiguous_format),
        _divisor(x, correction),
        grad=grad,
        most=MAX_BLOCK,
    )


def _check(x: torch.Tensor, correction: int) -> None:
    check_inputs("variance", x=x)
    check_last_dimension("variance", x)
    if correction < 0:
        raise ValueError(f"variance: correction is {correction}, it should be at least 0")


def _divisor(x: torch.Tensor, correction: int) -> float:
    return float(max(x.shape[-1] - correction, 0))
