"""`ops::softmax`: softmax over the last dimension."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::softmax", reference=reference, golden=golden, samples=samples)
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Compute `exp(x) / sum(exp(x))` over the last dimension of x `[..., cols]`, in x's dtype."""
    return kernel.forward(x)


@softmax.register_fake
def _(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::softmax_backward", mutates_args=())
def softmax_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x."""
    return kernel.backward(grad, x)


@softmax_backward.register_fake
def _(grad, x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep the input: the output is already rounded."""
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    """Give the gradient of x."""
    return softmax_backward(grad, *ctx.saved_tensors)


softmax.register_autograd(backward, setup_context=setup_context)
