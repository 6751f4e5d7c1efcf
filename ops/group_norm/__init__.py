"""`ops::group_norm`: normalization over groups of channels."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::group_norm", reference=reference, golden=golden, samples=samples)
def group_norm(
    x: torch.Tensor, groups: int, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Compute `(x - mean) * rsqrt(variance + eps) * weight + bias` for x `[batch, channels, ...]`, in x's dtype.

    Mean and variance are those of a sample's group of `channels / groups` channels; weight and bias are `[channels]`.
    """
    return kernel.forward(x, groups, weight, bias, eps)


@group_norm.register_fake
def _(x, groups, weight, bias, eps=1e-5):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::group_norm_backward", mutates_args=())
def group_norm_backward(
    grad: torch.Tensor, x: torch.Tensor, groups: int, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of x, weight and bias, the last two in float32."""
    return kernel.backward(grad, x, groups, weight, eps)


@group_norm_backward.register_fake
def _(grad, x, groups, weight, eps):
    channels = x.shape[1]
    return (
        torch.empty_like(x, memory_format=torch.contiguous_format),
        x.new_empty(channels, dtype=torch.float32),
        x.new_empty(channels, dtype=torch.float32),
    )


def setup_context(ctx, inputs, output):
    """Keep what the backward recomputes the statistics from."""
    x, ctx.groups, weight, bias, ctx.eps = inputs
    ctx.bias_dtype = bias.dtype
    ctx.save_for_backward(x, weight)


def backward(ctx, grad):
    """Give the gradients of (x, groups, weight, bias, eps)."""
    x, weight = ctx.saved_tensors
    grad_x, grad_weight, grad_bias = group_norm_backward(grad, x, ctx.groups, weight, ctx.eps)
    return grad_x, None, grad_weight.to(weight.dtype), grad_bias.to(ctx.bias_dtype), None


group_norm.register_autograd(backward, setup_context=setup_context)
