"""`ops::gated_scan`: gated linear recurrence over time."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::gated_scan", reference=reference, golden=golden, samples=samples)
def gated_scan(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute `h[t] = a[t] * h[t - 1] + b[t]` from h = 0 on, for a and b `[batch, time, channels]`, in b's dtype.

    It is meant for gates from 0 to 1. The product of some gates may underflow; then an Inf that they should carry on
    becomes NaN.
    """
    return kernel.forward(a, b)


@gated_scan.register_fake
def _(a, b):
    return torch.empty_like(b, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::gated_scan_backward", mutates_args=())
def gated_scan_backward(grad: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of a and b."""
    return kernel.backward(grad, a, b)


@gated_scan_backward.register_fake
def _(grad, a, b):
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in (a, b))


def setup_context(ctx, inputs, output):
    """Keep both inputs: the output is already rounded."""
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    """Give the gradients of (a, b)."""
    return gated_scan_backward(grad, *ctx.saved_tensors)


gated_scan.register_autograd(backward, setup_context=setup_context)
