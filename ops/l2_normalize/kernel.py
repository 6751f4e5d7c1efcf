"""Division by the Euclidean norm over the last dimension: Triton kernels and their launches.

Forward: `y = x / max(norm, eps)`, `norm = sqrt(sum(x^2))`, as torch.nn.functional.normalize has it.
Backward: `dx = (grad - y * sum(grad * y)) / norm` where the norm is at least eps, `dx = grad / eps` below it.

Squares overflow in float32 from 2^64 on, and vanish below 2^-75. Rows with a maximum near either are multiplied by a
power of two first, which rounds nothing, and eps with them (Blue, 1978, and Anderson, 2017, cut in the same way).
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs, check_last_dimension, over_rows

MAX_BLOCK = 1024


@triton.jit
def _scaled_norm(x_ptr, cols, BLOCK: tl.constexpr):
    """Return a power of two, and the norm of a row times it, of which no square overflows or vanishes."""
    lanes = tl.arange(0, BLOCK)
    magnitudes = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        magnitudes = tl.maximum(magnitudes, tl.abs(x))
    largest = tl.max(magnitudes)
    # Room for 2^24 squares above 2^50, and for the smallest subnormal, 2^-149, below 2^-50.
    scale = tl.where(largest > 2.0**50, 2.0**-100, tl.where(largest < 2.0**-50, 2.0**100, 1.0))
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = scale * tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        squares += x * x
    return scale, tl.sqrt_rn(tl.sum(squares))


@triton.jit
def _at_least(norm, eps):
    """Return the larger one; a norm that is NaN stays NaN, which a maximum drops."""
    return tl.where(norm < eps, eps, norm)


@triton.jit
def _forward_kernel(x_ptr, y_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * cols
    scale, norm = _scaled_norm(x_ptr, cols, BLOCK)
    divisor = _at_least(norm, eps * scale)
    lanes = tl.arange(0, BLOCK)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = scale * tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, tl.div_rn(x, divisor), mask=at < cols)


@triton.jit
def _backward_kernel(grad_ptr, x_ptr, grad_x_ptr, grad_stride, x_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    grad_ptr += row * grad_stride
    x_ptr += row * x_stride
    grad_x_ptr += row * cols
    lanes = tl.arange(0, BLOCK)
    scale, norm = _scaled_norm(x_ptr, cols, BLOCK)
    divisor = _at_least(norm, eps * scale)
    products = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = scale * tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        products += grad * tl.div_rn(x, divisor)
    # Below eps the divisor is a constant, through which no gradient comes.
    along = tl.where(norm < eps * scale, 0.0, tl.sum(products))
    for start in range(0, cols, BLOCK):
        at = start + lanes
        x = scale * tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        across = grad - tl.div_rn(x, divisor) * along
        tl.store(grad_x_ptr + at, tl.div_rn(across, divisor) * scale, mask=at < cols)


def forward(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Divide x `[..., cols]` by the norm of its last dimension, at least eps; contiguous, in x's dtype."""
    _check(x, eps)
    return over_rows(
        _forward_kernel, x, torch.empty_like(x, memory_format=torch.contiguous_format), eps, most=MAX_BLOCK
    )


def backward(grad: torch.Tensor, x: torch.Tensor, eps: float) -> torch.Tensor:
    """Return the gradient of x from the upstream gradient and x, both `[..., cols]`."""
    # A fused grad - y * along would leave the rounding error of the product where the gradient is 0.
    return over_rows(
        _backward_kernel,
        x,
        torch.empty_like(x, memory_format=torch.contiguous_format),
        eps,
        grad=grad,
        most=MAX_BLOCK,
        enable_fp_fusion=False,
    )


def _check(x: torch.Tensor, eps: float) -> None:
    check_inputs("l2_normalize", x=x)
    check_last_dimension("l2_normalize", x)
    if not eps >= 0.0:
        raise ValueError(f"l2_normalize: eps is {eps}, it should be at least 0")
