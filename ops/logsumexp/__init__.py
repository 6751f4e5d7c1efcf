"""`ops::logsumexp`: logarithm of the sum of exponentials over the last dimension."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::logsumexp", reference=reference, golden=golden, samples=samples)
def logsumexp(x: torch.Tensor) -> torch.Tensor:
    """Compute `log(sum(exp(x)))` over the last dimension of x `[..., cols]`, in x's dtype."""
    return kernel.forward(x)


@logsumexp.register_fake
def _(x):
    return x.new_empty(x.shape[:-1])


@torch.library.custom_op("ops::logsumexp_backward", mutates_args=())
def logsumexp_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x."""
    return kernel.backward(grad, x)


@logsumexp_backward.register_fake
def _(grad, x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep the input: the output is already rounded."""
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    """Give the gradient of x."""
    return logsumexp_backward(grad, *ctx.saved_tensors)


logsumexp.register_autograd(backward, setup_context=setup_context)
