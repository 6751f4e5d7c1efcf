"""`ops::scatter_add`: rows added into a copy of a table, by index."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::scatter_add", reference=reference, golden=golden, samples=samples)
def scatter_add(base: torch.Tensor, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """Return base `[rows, dim]` with `out[index[i]] += src[i]` for src `[count, dim]` and index `[count]`.

    Rows that come several times add up, in float32, in an order that varies from run to run. An index outside
    `[0, rows)` adds nothing.
    """
    return kernel.forward(base, index, src)


@scatter_add.register_fake
def _(base, index, src):
    return torch.empty_like(base, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::scatter_add_backward", mutates_args=())
def scatter_add_backward(grad: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return the gradient of src; that of base is grad itself."""
    return kernel.backward(grad, index)


@scatter_add_backward.register_fake
def _(grad, index):
    return grad.new_empty(index.shape[0], grad.shape[1])


def setup_context(ctx, inputs, output):
    """Keep the index: the gradients depend on no value."""
    ctx.save_for_backward(inputs[1])


def backward(ctx, grad):
    """Give the gradients of (base, index, src)."""
    needs_base, _, needs_src = ctx.needs_input_grad
    return grad if needs_base else None, None, scatter_add_backward(grad, *ctx.saved_tensors) if needs_src else None


scatter_add.register_autograd(backward, setup_context=setup_context)
