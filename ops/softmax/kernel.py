"""Softmax over the last dimension: Triton kernels and their launches.

Forward in one reading pass with a running maximum (Milakov and Gimelshein, 2018, algorithm 3), then one writing pass.
Backward: `dx = y * (grad - sum(grad * y))`, with y computed again from x: a y saved in a narrow dtype would put its
rounding error into the gradient, for the same memory traffic.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs, check_last_dimension, over_rows

MAX_BLOCK = 1024


@triton.jit
def _shift(maximum):
    """Return what to subtract before exp: the maximum, or 0 where all so far is -Inf.

    So a finite value after a block of -Inf still counts, and a row of -Inf only ends as 0 / 0. A NaN, which tl.max
    drops, comes back through its own exp, and +Inf through Inf - Inf.
    """
    return tl.where(maximum == float("-inf"), 0.0, maximum)


@triton.jit
def _forward_kernel(x_ptr, y_ptr, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * cols
    lanes = tl.arange(0, BLOCK)

    maximum = tl.max(tl.full([BLOCK], float("-inf"), tl.float32))
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(maximum, tl.max(x))
        sums = sums * tl.exp(maximum - _shift(larger)) + tl.exp(x - _shift(larger))
        maximum = larger
    total = tl.sum(sums)

    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        tl.store(y_ptr + at, tl.exp(x - _shift(maximum)) / total, mask=at < cols)


@triton.jit
def _backward_kernel(grad_ptr, x_ptr, grad_x_ptr, grad_stride, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    grad_ptr += row * grad_stride
    x_ptr += row * x_stride
    grad_x_ptr += row * cols
    lanes = tl.arange(0, BLOCK)

    maximum = tl.max(tl.full([BLOCK], float("-inf"), tl.float32))
    sums = tl.zeros([BLOCK], tl.float32)
    products = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        larger = tl.maximum(maximum, tl.max(x))
        rescale = tl.exp(maximum - _shift(larger))
        exponential = tl.exp(x - _shift(larger))
        sums = sums * rescale + exponential
        products = products * rescale + exponential * grad
        maximum = larger
    total = tl.sum(sums)
    mean_grad = tl.sum(products) / total

    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        y = tl.exp(x - _shift(maximum)) / total
        tl.store(grad_x_ptr + at, y * (grad - mean_grad), mask=at < cols)


def forward(x: torch.Tensor) -> torch.Tensor:
    """Normalize `exp(x)` over the last dimension of x `[..., cols]`; contiguous, in x's dtype."""
    check_inputs("softmax", x=x)
    check_last_dimension("softmax", x)
    return over_rows(_forward_kernel, x, torch.empty_like(x, memory_format=torch.contiguous_format), most=MAX_BLOCK)


def backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x from the upstream gradient and x, both `[..., cols]`."""
    return over_rows(
        _backward_kernel, x, torch.empty_like(x, memory_format=torch.contiguous_format), grad=grad, most=MAX_BLOCK
    )
