"""`ops::cumsum`: cumulative sum along the last dimension."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::cumsum", reference=reference, golden=golden, samples=samples)
def cumsum(x: torch.Tensor) -> torch.Tensor:
    """Add up x `[..., cols]` along its last dimension: `y[i] = x[0] + ... + x[i]`, in x's dtype."""
    return kernel.scan(x, reverse=False)


@cumsum.register_fake
def _(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::cumsum_backward", mutates_args=())
def cumsum_backward(grad: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x."""
    return kernel.scan(grad, reverse=True)


@cumsum_backward.register_fake
def _(grad):
    return torch.empty_like(grad, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep nothing: the gradient depends on no input."""


def backward(ctx, grad):
    """Give the gradient of x."""
    return cumsum_backward(grad)


cumsum.register_autograd(backward, setup_context=setup_context)
