"""`ops::layer_norm`: layer normalization over the last dimension."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::layer_norm", reference=reference, golden=golden, samples=samples)
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Compute `(x - mean) * rsqrt(var + eps) * weight + bias` for x `[..., cols]`, in x's dtype."""
    return kernel.forward(x, weight, bias, eps)


@layer_norm.register_fake
def _(x, weight, bias, eps=1e-5):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::layer_norm_backward", mutates_args=())
def layer_norm_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradient of x, and in float32 those of weight and bias."""
    return kernel.backward(grad, x, weight, eps)


@layer_norm_backward.register_fake
def _(grad, x, weight, eps):
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format)
    cols = x.shape[-1]
    return grad_x, x.new_empty(cols, dtype=torch.float32), x.new_empty(cols, dtype=torch.float32)


def setup_context(ctx, inputs, output):
    """Keep what the backward recomputes the statistics from, and the dtype that bias wants its gradient in."""
    x, weight, bias, ctx.eps = inputs
    ctx.bias_dtype = bias.dtype
    ctx.save_for_backward(x, weight)


def backward(ctx, grad):
    """Give the gradients of (x, weight, bias, eps)."""
    x, weight = ctx.saved_tensors
    grad_x, grad_weight, grad_bias = layer_norm_backward(grad, x, weight, ctx.eps)
    return grad_x, grad_weight.to(weight.dtype), grad_bias.to(ctx.bias_dtype), None


layer_norm.register_autograd(backward, setup_context=setup_context)
