"""GELU, exact and tanh-approximated: Triton kernels and their launches.

Forward (Hendrycks and Gimpel, 2016): `x * Phi(x)`, Phi the normal distribution function, or its approximation
`x * (1 + tanh(u)) / 2 = x * sigmoid(2u)`, `u = sqrt(2/pi) * (x + 0.044715 x^3)`.
Backward: `grad * (Phi(x) + x * phi(x))`, or `grad * (s + x * s * (1 - s) * 2 du/dx)`, `s = sigmoid(2u)`.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs

MAX_BLOCK = 1024

SQRT_HALF = tl.constexpr(0.7071067811865476)
INVERSE_SQRT_TWO_PI = tl.constexpr(0.3989422804014327)
TWICE_SQRT_TWO_OVER_PI = tl.constexpr(1.5957691216057308)
CUBIC = tl.constexpr(0.044715)
# Beyond |x| = 100 every sigmoid and density is 0 or 1; a bounded square keeps x^2 * 0 from becoming Inf * 0.
SATURATED_SQUARE = tl.constexpr(1e4)


@triton.jit
def _normal(x, square):
    """Return Phi(x) and phi(x).

    Below -1 Phi comes from Mills' ratio, `Phi(x) = phi(x) * R(-x)`: there `1 + erf` cancels, to half of the digits of
    bfloat16 at -5. R is a polynomial in `q = 1 / (1 + 0.4 |x|)`, fitted here to `sqrt(pi/2) * erfcx(|x| / sqrt(2))` on
    1 <= |x| <= 14.5 for the least relative error, 8.2e-8; phi is 0 in float32 beyond.
    """
    density = INVERSE_SQRT_TWO_PI * tl.exp(-0.5 * square)
    q = 1.0 / (1.0 + 0.4 * tl.abs(x))
    ratio = 0.170756605 * q - 0.4673101
    ratio = ratio * q + 0.264110979
    ratio = ratio * q + 0.139217
    ratio = ratio * q + 0.34842784
    ratio = ratio * q + 0.398804431
    ratio = ratio * q + 0.400047308
    return tl.where(x < -1.0, density * (ratio * q), 0.5 * (1.0 + tl.erf(x * SQRT_HALF))), density


@triton.jit
def _tanh_sigmoids(x, square):
    """Return sigmoid(2u) and sigmoid(-2u), without tanh, overflow or cancellation."""
    twice_u = TWICE_SQRT_TWO_OVER_PI * x * (1.0 + CUBIC * square)
    e = tl.exp(-tl.abs(twice_u))
    inverse = 1.0 / (1.0 + e)
    return tl.where(twice_u >= 0, inverse, e * inverse), tl.where(twice_u >= 0, e * inverse, inverse)


@triton.jit
def _forward_kernel(x_ptr, y_ptr, size, TANH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    square = tl.minimum(x * x, SATURATED_SQUARE)
    if TANH:
        s, _ = _tanh_sigmoids(x, square)
    else:
        s, _ = _normal(x, square)
    tl.store(y_ptr + at, x * s, mask=at < size)


@triton.jit
def _backward_kernel(grad_ptr, x_ptr, grad_x_ptr, size, TANH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    square = tl.minimum(x * x, SATURATED_SQUARE)
    if TANH:
        s, complement = _tanh_sigmoids(x, square)
        slope = TWICE_SQRT_TWO_OVER_PI * (1.0 + 3.0 * CUBIC * square)
        derivative = s + x * s * complement * slope
    else:
        distribution, density = _normal(x, square)
        derivative = distribution + x * density
    tl.store(grad_x_ptr + at, grad * derivative, mask=at < size)


def forward(x: torch.Tensor, approximate: str) -> torch.Tensor:
    """Apply GELU to x of any shape; contiguous, in x's dtype. `approximate` is "none" or "tanh", else ValueError."""
    check_inputs("gelu", x=x)
    if approximate not in ("none", "tanh"):
        raise ValueError(f'gelu: approximate is {approximate!r}, it should be "none" or "tanh"')
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    size = y.numel()
    if size:
        block = min(triton.next_power_of_2(size), MAX_BLOCK)
        with torch.cuda.device_of(x):
            _forward_kernel[(triton.cdiv(size, block),)](
                x.contiguous(), y, size, TANH=approximate == "tanh", BLOCK=block
            )
    return y


def backward(grad: torch.Tensor, x: torch.Tensor, approximate: str) -> torch.Tensor:
    """Return the gradient of x from the upstream gradient, both of x's shape."""
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    size = x.numel()
    if size:
        block = min(triton.next_power_of_2(size), MAX_BLOCK)
        with torch.cuda.device_of(x):
            _backward_kernel[(triton.cdiv(size, block),)](
                grad.contiguous(), x.contiguous(), grad_x, size, TANH=approximate == "tanh", BLOCK=block
            )
    return grad_x
