"""Parametric ReLU, one slope per channel or one for all: Triton kernels and their launches.

Forward (He et al., 2015, equation 1): `y = x where x > 0, weight * x elsewhere`.
Backward: `dx = grad where x > 0, weight * grad elsewhere`, `dweight = sum of grad * x where not x > 0` over all
elements of a channel, in two stages without atomics.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs, strips

MAX_BLOCK = 1024
SUM_PROGRAMS = 1024


@triton.jit
def _forward_kernel(x_ptr, weight_ptr, y_ptr, size, channels, inner, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at // inner % channels, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, tl.where(x > 0, x, weight * x), mask=mask)


@triton.jit
def _grad_x_kernel(grad_ptr, x_ptr, weight_ptr, grad_x_ptr, size, channels, inner, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at // inner % channels, mask=mask, other=0.0).to(tl.float32)
    tl.store(grad_x_ptr + at, tl.where(x > 0, grad, weight * grad), mask=mask)


@triton.jit
def _grad_weight_kernel(grad_ptr, x_ptr, partial_ptr, channels, inner, per_channel, per_strip, BLOCK: tl.constexpr):
    channel = tl.program_id(0).to(tl.int64)
    strip = tl.program_id(1).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, per_strip, BLOCK):
        # The elements of a channel, counted through all batches.
        place = strip * per_strip + start + lanes
        mask = place < per_channel
        at = (place // inner * channels + channel) * inner + place % inner
        grad = tl.load(grad_ptr + at, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        sums += tl.where(x > 0, 0.0, grad * x)
    tl.store(partial_ptr + strip * channels + channel, tl.sum(sums))


def forward(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Scale what is not positive in x `[batch, channels, ...]` by weight, `[channels]` or `[1]`, in x's dtype."""
    check_inputs("prelu", x=x, weight=weight)
    if weight.dim() != 1 or weight.numel() not in (1, x.shape[1] if x.dim() > 1 else 1) or weight.numel() == 0:
        raise ValueError(
            f"prelu: weight is {list(weight.shape)}, it should be [1] or one slope per channel of x {list(x.shape)}"
        )
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    size = x.numel()
    if size:
        channels, inner = _cut(x, weight)
        block = min(triton.next_power_of_2(size), MAX_BLOCK)
        with torch.cuda.device_of(x):
            _forward_kernel[(triton.cdiv(size, block),)](
                x.contiguous(), weight.contiguous(), y, size, channels, inner, BLOCK=block
            )
    return y


def backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x `[batch, channels, ...]` and weight, each in its input's dtype."""
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    size = x.numel()
    if not size:
        return grad_x, torch.zeros_like(weight, memory_format=torch.contiguous_format)
    grad, x = grad.contiguous(), x.contiguous()
    channels, inner = _cut(x, weight)
    per_channel = size // channels
    block = min(triton.next_power_of_2(size), MAX_BLOCK)
    sum_block = min(triton.next_power_of_2(per_channel), MAX_BLOCK)
    count, per_strip = strips(per_channel, sum_block, limit=triton.cdiv(SUM_PROGRAMS, channels))
    partial = torch.empty(count, channels, dtype=torch.float32, device=x.device)
    with torch.cuda.device_of(x):
        _grad_x_kernel[(triton.cdiv(size, block),)](
            grad, x, weight.contiguous(), grad_x, size, channels, inner, BLOCK=block
        )
        _grad_weight_kernel[(channels, count)](
            grad, x, partial, channels, inner, per_channel, per_strip, BLOCK=sum_block
        )
    return grad_x, partial.sum(0).to(weight.dtype)


def _cut(x: torch.Tensor, weight: torch.Tensor) -> tuple[int, int]:
    """Return the number of slopes, and how many adjacent elements of a contiguous x share one."""
    if weight.numel() == 1:
        return 1, x.numel()
    return weight.numel(), x.numel() // (x.shape[0] * x.shape[1])
