"""`ops::linear`: a linear layer with bias."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::linear", reference=reference, golden=golden, samples=samples)
def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Compute `x @ weight^T + bias` for x `[..., k]`, weight `[n, k]` and bias `[n]`, all of one dtype."""
    return kernel.forward(x, weight, bias)


@linear.register_fake
def _(x, weight, bias):
    return x.new_empty(*x.shape[:-1], weight.shape[0])


@torch.library.custom_op("ops::linear_backward", mutates_args=())
def linear_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of x, weight and bias."""
    return kernel.backward(grad, x, weight)


@linear_backward.register_fake
def _(grad, x, weight):
    return x.new_empty(x.shape), weight.new_empty(weight.shape), weight.new_empty(weight.shape[0])


def setup_context(ctx, inputs, output):
    """Keep both factors."""
    x, weight, _ = inputs
    ctx.save_for_backward(x, weight)


def backward(ctx, grad):
    """Give the gradients of (x, weight, bias)."""
    return linear_backward(grad, *ctx.saved_tensors)


linear.register_autograd(backward, setup_context=setup_context)
