"""`ops::variance`: variance over the last dimension."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples, terms


@opcheck.register("ops::variance", reference=reference, golden=golden, samples=samples, terms=terms)
def variance(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    """Compute `sum((x - mean)^2) / (cols - correction)` over the last dimension of x `[..., cols]`, in x's dtype.

    As with torch.var, a single element with a correction of 1 gives NaN.
    """
    return kernel.forward(x, correction)


@variance.register_fake
def _(x, correction=1):
    return x.new_empty(x.shape[:-1])


@torch.library.custom_op("ops::variance_backward", mutates_args=())
def variance_backward(grad: torch.Tensor, x: torch.Tensor, correction: int) -> torch.Tensor:
    """Return the gradient of x."""
    return kernel.backward(grad, x, correction)


@variance_backward.register_fake
def _(grad, x, correction):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep what the backward computes the mean from."""
    x, ctx.correction = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    """Give the gradients of (x, correction)."""
    return variance_backward(grad, *ctx.saved_tensors, ctx.correction), None


variance.register_autograd(backward, setup_context=setup_context)
