"""What a program finds out about one row of adjacent elements, tile by tile in float32."""

import triton
import triton.language as tl


@triton.jit
def mean_of(x_ptr, size, BLOCK: tl.constexpr):
    """Return the mean of `size` elements."""
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, size, BLOCK):
        at = start + lanes
        sums += tl.load(x_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    return tl.sum(sums) / size


@triton.jit
def squares_about(mean, x_ptr, size, BLOCK: tl.constexpr):
    """Return the sum of `(x - mean)^2` of `size` elements.

    What the mean is off by is taken out again (Chan, Golub and LeVeque, 1983, equation 1.7): the rounding of a mean
    that is large beside the deviations would enter squared.
    """
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, size, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < size, other=0.0).to(tl.float32)
        centered = tl.where(at < size, x - mean, 0.0)
        sums += centered
        squares += centered * centered
    rest = tl.sum(sums)
    return tl.sum(squares) - rest * (rest / size)


@triton.jit
def maximum_and_total(x_ptr, size, BLOCK: tl.constexpr):
    """Return max(x) and sum(exp(x - max(x))) of `size` elements, in one pass (Milakov and Gimelshein, 2018).

    Where the maximum is infinite nothing is subtracted: -Inf only has the sum 0, +Inf the sum Inf. A NaN, which tl.max
    drops, comes back through its own exp.
    """
    lanes = tl.arange(0, BLOCK)
    maximum = tl.max(tl.full([BLOCK], float("-inf"), tl.float32))
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, size, BLOCK):
        at = start + lanes
        x = tl.load(x_ptr + at, mask=at < size, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(maximum, tl.max(x))
        shift = tl.where(tl.abs(larger) == float("inf"), 0.0, larger)
        # At most 1: where +Inf has just come the sums so far no longer count, and Inf times a 0 among them is NaN.
        sums = sums * tl.exp(tl.minimum(maximum - shift, 0.0)) + tl.exp(x - shift)
        maximum = larger
    return maximum, tl.sum(sums)
