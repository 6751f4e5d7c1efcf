"""`ops::gelu`: the Gaussian error linear unit, exact or by tanh."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::gelu", reference=reference, golden=golden, samples=samples)
def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Compute `x * Phi(x)` elementwise in x's dtype; `approximate="tanh"` replaces Phi by its tanh form."""
    return kernel.forward(x, approximate)


@gelu.register_fake
def _(x, approximate="none"):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::gelu_backward", mutates_args=())
def gelu_backward(grad: torch.Tensor, x: torch.Tensor, approximate: str) -> torch.Tensor:
    """Return the gradient of x."""
    return kernel.backward(grad, x, approximate)


@gelu_backward.register_fake
def _(grad, x, approximate):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep the input and the form."""
    x, ctx.approximate = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    """Give the gradients of (x, approximate)."""
    (x,) = ctx.saved_tensors
    return gelu_backward(grad, x, ctx.approximate), None


gelu.register_autograd(backward, setup_context=setup_context)
