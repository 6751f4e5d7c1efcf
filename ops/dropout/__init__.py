"""`ops::dropout`: dropout whose mask is a pure function of a seed."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::dropout", reference=reference, golden=golden, samples=samples)
def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Compute `x / (1 - p)` where the mask of a 64-bit seed keeps x `[...]`, 0 elsewhere, in x's dtype."""
    return kernel.dropout(x, p, seed)


@dropout.register_fake
def _(x, p, seed):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep the seed in place of the mask."""
    _, ctx.p, ctx.seed = inputs


def backward(ctx, grad):
    """Give the gradients of (x, p, seed): dropout is linear, so that the gradient passes through the same op."""
    return dropout(grad, ctx.p, ctx.seed), None, None


dropout.register_autograd(backward, setup_context=setup_context)
