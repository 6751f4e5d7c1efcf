"""`ops::rms_norm`: root mean square normalization over the last dimension."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::rms_norm", reference=reference, golden=golden, samples=samples)
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Compute `x * rsqrt(mean(x^2) + eps) * weight` for x `[..., cols]` and weight `[cols]`, in x's dtype."""
    return kernel.forward(x, weight, eps)


@rms_norm.register_fake
def _(x, weight, eps=1e-6):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::rms_norm_backward", mutates_args=())
def rms_norm_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x and weight."""
    return kernel.backward(grad, x, weight, eps)


@rms_norm_backward.register_fake
def _(grad, x, weight, eps):
    contiguous = torch.contiguous_format
    return torch.empty_like(x, memory_format=contiguous), torch.empty_like(weight, memory_format=contiguous)


def setup_context(ctx, inputs, output):
    """Keep what the backward recomputes the statistics from."""
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def backward(ctx, grad):
    """Give the gradients of (x, weight, eps)."""
    return *rms_norm_backward(grad, *ctx.saved_tensors, ctx.eps), None


rms_norm.register_autograd(backward, setup_context=setup_context)
