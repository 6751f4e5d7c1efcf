"""`ops::prelu`: rectified linear unit with a learned slope per channel."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::prelu", reference=reference, golden=golden, samples=samples)
def prelu(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Compute `x where x > 0, weight * x elsewhere` for x `[batch, channels, ...]` and weight `[channels]` or `[1]`."""
    return kernel.forward(x, weight)


@prelu.register_fake
def _(x, weight):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::prelu_backward", mutates_args=())
def prelu_backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x and weight."""
    return kernel.backward(grad, x, weight)


@prelu_backward.register_fake
def _(grad, x, weight):
    contiguous = torch.contiguous_format
    return torch.empty_like(x, memory_format=contiguous), torch.empty_like(weight, memory_format=contiguous)


def setup_context(ctx, inputs, output):
    """Keep both inputs."""
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    """Give the gradients of (x, weight)."""
    return prelu_backward(grad, *ctx.saved_tensors)


prelu.register_autograd(backward, setup_context=setup_context)
