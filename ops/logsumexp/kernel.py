"""Logarithm of the sum of exponentials over the last dimension: Triton kernels and their launches.

Forward: `max(x) + log(sum(exp(x - max(x))))` in one reading pass with a running maximum.
Backward: `dx = grad * softmax(x)`, with the softmax computed again from x: exp(x - out) is off by the rounding of out,
3e-5 for logits near 500 in float32 and all of it in a narrow type.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs, check_last_dimension, over_rows
from .._reduce import maximum_and_total

MAX_BLOCK = 1024


@triton.jit
def _forward_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    maximum, total = maximum_and_total(x_ptr + row * x_stride, cols, BLOCK)
    shift = tl.where(tl.abs(maximum) == float("inf"), 0.0, maximum)
    tl.store(out_ptr + row, shift + tl.log(total))


@triton.jit
def _backward_kernel(grad_ptr, x_ptr, grad_x_ptr, grad_stride, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    grad_x_ptr += row * cols
    grad = tl.load(grad_ptr + row * grad_stride).to(tl.float32)
    maximum, total = maximum_and_total(x_ptr, cols, BLOCK)
    lanes = tl.arange(0, BLOCK)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        # Of an infinite maximum too: 0 beside +Inf, NaN at it and in a row of -Inf only, as torch.logsumexp has it.
        tl.store(grad_x_ptr + at, grad * (tl.exp(x - maximum) / total), mask=at < cols)


def forward(x: torch.Tensor) -> torch.Tensor:
    """Return `log(sum(exp(x)))` `[...]` of x `[..., cols]`, in x's dtype."""
    check_inputs("logsumexp", x=x)
    check_last_dimension("logsumexp", x)
    return over_rows(_forward_kernel, x, x.new_empty(x.shape[:-1]), most=MAX_BLOCK)


def backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x `[..., cols]` from the upstream gradient `[...]`, in x's dtype."""
    return over_rows(
        _backward_kernel, x, torch.empty_like(x, memory_format=torch.contiguous_format), grad=grad, most=MAX_BLOCK
    )
