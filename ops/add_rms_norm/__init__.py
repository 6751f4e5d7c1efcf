"""`ops::add_rms_norm`: residual addition and root mean square normalization of the sum."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::add_rms_norm", reference=reference, golden=golden, samples=samples)
def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `rms_norm(x + residual) * weight` and `x + residual` for `[..., cols]` inputs of one dtype."""
    return kernel.forward(x, residual, weight, eps)


@add_rms_norm.register_fake
def _(x, residual, weight, eps=1e-6):
    contiguous = torch.contiguous_format
    return torch.empty_like(x, memory_format=contiguous), torch.empty_like(x, memory_format=contiguous)


@torch.library.custom_op("ops::add_rms_norm_backward", mutates_args=())
def add_rms_norm_backward(
    grad_normed: torch.Tensor, grad_total: torch.Tensor | None, total: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradient of x, which is residual's too, and of weight."""
    return kernel.backward(grad_normed, grad_total, total, weight, eps)


@add_rms_norm_backward.register_fake
def _(grad_normed, grad_total, total, weight, eps):
    contiguous = torch.contiguous_format
    return torch.empty_like(total, memory_format=contiguous), torch.empty_like(weight, memory_format=contiguous)


def setup_context(ctx, inputs, output):
    """Keep the sum, which is alive anyway as the next residual."""
    _, _, weight, ctx.eps = inputs
    ctx.save_for_backward(output[1], weight)
    ctx.set_materialize_grads(False)


def backward(ctx, grad_normed, grad_total):
    """Give the gradients of (x, residual, weight, eps); an output that nobody used has no upstream gradient."""
    if grad_normed is None:
        return grad_total, grad_total, None, None
    grad_x, grad_weight = add_rms_norm_backward(grad_normed, grad_total, *ctx.saved_tensors, ctx.eps)
    return grad_x, grad_x, grad_weight, None


add_rms_norm.register_autograd(backward, setup_context=setup_context)
