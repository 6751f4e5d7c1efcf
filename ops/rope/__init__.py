"""`ops::rope` and its in-place twin `ops::rope_`: rotary position embedding."""

import torch

import opcheck

from . import kernel
from .reference import golden, golden_in_place, reference, reference_in_place, samples


@opcheck.register("ops::rope", reference=reference, golden=golden, samples=samples)
def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False) -> torch.Tensor:
    """Rotate the first `rot` elements of each head of x `[batch, seq, heads, dim]` by cos and sin `[seq, rot / 2]`.

    Pairs are `(x[i], x[i + rot / 2])`, or neighbours where interleaved. cos and sin are tables: they get no gradient.
    """
    return kernel.rotate(x, cos, sin, interleaved)


@rope.register_fake
def _(x, cos, sin, interleaved=False):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::rope_backward", mutates_args=())
def rope_backward(grad: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """Return the gradient of x."""
    return kernel.rotate(grad, cos, sin, interleaved, inverse=True)


@rope_backward.register_fake
def _(grad, cos, sin, interleaved):
    return torch.empty_like(grad, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep the tables; the rotation is linear in x."""
    _, cos, sin, ctx.interleaved = inputs
    ctx.save_for_backward(cos, sin)


def backward(ctx, grad):
    """Give the gradients of (x, cos, sin, interleaved)."""
    return rope_backward(grad, *ctx.saved_tensors, ctx.interleaved), None, None, None


rope.register_autograd(backward, setup_context=setup_context)


@opcheck.register(
    "ops::rope_", reference=reference_in_place, golden=golden_in_place, samples=samples, mutates_args=("x",)
)
def rope_(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False) -> None:
    """Do what `rope` does, into x `[batch, seq, heads, dim]` itself, for inference."""
    kernel.rotate_in_place(x, cos, sin, interleaved)


@rope_.register_fake
def _(x, cos, sin, interleaved=False):
    return None
