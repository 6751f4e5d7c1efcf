"""Group normalization over groups of channels and all positions: Triton kernels and their launches.

Forward (Wu and He, 2018, equation 7): `y = n * weight + bias`, `n = (x - mean) * rstd`,
`rstd = 1 / sqrt(mean((x - mean)^2) + eps)`, weight and bias per channel, mean and variance per sample and group; the
variance in a second pass, so that a large mean does not cancel it.
Backward, with `g = grad * weight`: `dx = rstd * (g - mean(g) - n * mean(g * n))`. The sums of `grad` and `grad * n`
over the positions of each channel come first: the means of a group are sums of them over its channels, dbias and
dweight over the batch. No atomics.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs
from .._reduce import mean_of, squares_about

MAX_BLOCK = 1024


@triton.jit
def _statistics(x_ptr, size, eps, BLOCK: tl.constexpr):
    """Return mean and 1 / sqrt(variance + eps) of `size` adjacent elements."""
    mean = mean_of(x_ptr, size, BLOCK)
    return mean, 1.0 / tl.sqrt_rn(squares_about(mean, x_ptr, size, BLOCK) / size + eps)


@triton.jit
def _forward_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, groups, group_channels, positions, size, eps, BLOCK: tl.constexpr
):
    program = tl.program_id(0).to(tl.int64)
    first_channel = program % groups * group_channels
    x_ptr += program * size
    y_ptr += program * size
    mean, rstd = _statistics(x_ptr, size, eps, BLOCK)
    lanes = tl.arange(0, BLOCK)
    for start in range(0, size, BLOCK):
        at = start + lanes
        mask = at < size
        channel = first_channel + at // positions
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + channel, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x - mean) * rstd * weight + bias, mask=mask)


@triton.jit
def _statistics_kernel(x_ptr, mean_ptr, rstd_ptr, size, eps, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    mean, rstd = _statistics(x_ptr + program * size, size, eps, BLOCK)
    tl.store(mean_ptr + program, mean)
    tl.store(rstd_ptr + program, rstd)


@triton.jit
def _channel_sums_kernel(
    grad_ptr, x_ptr, mean_ptr, rstd_ptr, sum_ptr, product_ptr, group_channels, positions, BLOCK: tl.constexpr
):
    # Channels are counted through all samples, so that each has its group at its own number over group_channels.
    channel = tl.program_id(0).to(tl.int64)
    mean = tl.load(mean_ptr + channel // group_channels)
    rstd = tl.load(rstd_ptr + channel // group_channels)
    grad_ptr += channel * positions
    x_ptr += channel * positions
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    products = tl.zeros([BLOCK], tl.float32)
    for start in range(0, positions, BLOCK):
        at = start + lanes
        grad = tl.load(grad_ptr + at, mask=at < positions, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + at, mask=at < positions, other=0.0).to(tl.float32)
        sums += grad
        products += tl.where(at < positions, grad * ((x - mean) * rstd), 0.0)
    tl.store(sum_ptr + channel, tl.sum(sums))
    tl.store(product_ptr + channel, tl.sum(products))


@triton.jit
def _grad_x_kernel(
    grad_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    sum_ptr,
    product_ptr,
    grad_x_ptr,
    groups,
    group_channels,
    positions,
    size,
    BLOCK: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    first_channel = program % groups * group_channels
    grad_ptr += program * size
    x_ptr += program * size
    grad_x_ptr += program * size
    mean = tl.load(mean_ptr + program)
    rstd = tl.load(rstd_ptr + program)

    sums = tl.zeros([BLOCK_CHANNELS], tl.float32)
    products = tl.zeros([BLOCK_CHANNELS], tl.float32)
    for start in range(0, group_channels, BLOCK_CHANNELS):
        at = start + tl.arange(0, BLOCK_CHANNELS)
        mask = at < group_channels
        weight = tl.load(weight_ptr + first_channel + at, mask=mask, other=0.0).to(tl.float32)
        sums += weight * tl.load(sum_ptr + program * group_channels + at, mask=mask, other=0.0)
        products += weight * tl.load(product_ptr + program * group_channels + at, mask=mask, other=0.0)
    offset = tl.sum(sums) / size
    projection = tl.sum(products) / size

    lanes = tl.arange(0, BLOCK)
    for start in range(0, size, BLOCK):
        at = start + lanes
        mask = at < size
        grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + first_channel + at // positions, mask=mask, other=0.0).to(tl.float32)
        normalized = (x - mean) * rstd
        tl.store(grad_x_ptr + at, rstd * (grad * weight - offset - normalized * projection), mask=mask)


def forward(x: torch.Tensor, groups: int, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalize x `[batch, channels, ...]` by groups of channels, scale by weight and shift by bias `[channels]`."""
    _check(x, groups, weight, bias)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    group_channels, positions = _cut(x, groups)
    size = group_channels * positions
    with torch.cuda.device_of(x):
        _forward_kernel[(x.shape[0] * groups,)](
            x.contiguous(),
            weight.contiguous(),
            bias.contiguous(),
            y,
            groups,
            group_channels,
            positions,
            size,
            eps,
            BLOCK=_block(size),
        )
    return y


def backward(
    grad: torch.Tensor, x: torch.Tensor, groups: int, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradient of x `[batch, channels, ...]` in x's dtype, of weight and bias in float32."""
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    batch, channels = x.shape[:2]
    if x.numel() == 0:
        # Two tensors, not two views of one: a custom op's outputs may not alias.
        return grad_x, x.new_zeros(channels, dtype=torch.float32), x.new_zeros(channels, dtype=torch.float32)
    grad, x = grad.contiguous(), x.contiguous()
    group_channels, positions = _cut(x, groups)
    size = group_channels * positions
    mean, rstd = torch.empty(2, batch * groups, dtype=torch.float32, device=x.device).unbind()
    sums, products = torch.empty(2, batch, channels, dtype=torch.float32, device=x.device).unbind()
    with torch.cuda.device_of(x):
        _statistics_kernel[(batch * groups,)](x, mean, rstd, size, eps, BLOCK=_block(size))
        _channel_sums_kernel[(batch * channels,)](
            grad, x, mean, rstd, sums, products, group_channels, positions, BLOCK=_block(positions)
        )
        _grad_x_kernel[(batch * groups,)](
            grad,
            x,
            weight.contiguous(),
            mean,
            rstd,
            sums,
            products,
            grad_x,
            groups,
            group_channels,
            positions,
            size,
            BLOCK=_block(size),
            BLOCK_CHANNELS=_block(group_channels),
            # A fused grad * weight - offset would leave the rounding error of the product where the gradient is 0.
            enable_fp_fusion=False,
        )
    return grad_x, products.sum(0), sums.sum(0)


def _check(x: torch.Tensor, groups: int, weight: torch.Tensor, bias: torch.Tensor) -> None:
    check_inputs("group_norm", x=x, weight=weight, bias=bias)
    if x.dim() < 2 or 0 in x.shape[1:]:
        raise ValueError(
            f"group_norm: x is {list(x.shape)}, it should be [batch, channels, ...], all but batch at least 1"
        )
    channels = x.shape[1]
    if groups < 1 or channels % groups:
        raise ValueError(f"group_norm: groups is {groups}, it should divide the {channels} channels")
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter.shape != (channels,):
            raise ValueError(
                f"group_norm: {name} is {list(parameter.shape)}, it should be [{channels}] as x's channels"
            )


def _cut(x: torch.Tensor, groups: int) -> tuple[int, int]:
    """Return the channels of a group, and the positions of a channel."""
    batch, channels = x.shape[:2]
    return channels // groups, x.numel() // (batch * channels)


def _block(size: int) -> int:
    return min(triton.next_power_of_2(size), MAX_BLOCK)
