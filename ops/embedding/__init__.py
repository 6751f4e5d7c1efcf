"""`ops::embedding`: lookup of rows by index."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::embedding", reference=reference, golden=golden, samples=samples)
def embedding(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int | None = None) -> torch.Tensor:
    """Gather `weight[indices]` from weight `[rows, dim]`; the row padding_idx, negative from the end, gets no gradient.

    An index outside `[0, rows)` gives a row of NaN.
    """
    return kernel.forward(weight, indices, padding_idx)


@embedding.register_fake
def _(weight, indices, padding_idx=None):
    return weight.new_empty(*indices.shape, weight.shape[1])


@torch.library.custom_op("ops::embedding_backward", mutates_args=())
def embedding_backward(
    grad: torch.Tensor, indices: torch.Tensor, rows: int, padding_idx: int | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return the gradient of weight."""
    return kernel.backward(grad, indices, rows, padding_idx, dtype)


@embedding_backward.register_fake
def _(grad, indices, rows, padding_idx, dtype):
    return grad.new_empty(rows, grad.shape[-1], dtype=dtype)


def setup_context(ctx, inputs, output):
    """Keep the indices and what the gradient is to look like; the weight itself is not needed."""
    weight, indices, ctx.padding_idx = inputs
    ctx.rows, ctx.dtype = weight.shape[0], weight.dtype
    ctx.save_for_backward(indices)


def backward(ctx, grad):
    """Give the gradient of (weight, indices, padding_idx)."""
    return embedding_backward(grad, *ctx.saved_tensors, ctx.rows, ctx.padding_idx, ctx.dtype), None, None


embedding.register_autograd(backward, setup_context=setup_context)
