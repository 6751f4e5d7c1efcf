"""`ops::cross_entropy`: cross entropy against class indices, with label smoothing and z-loss."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::cross_entropy", reference=reference, golden=golden, samples=samples)
def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the cross entropy of logits `[rows, classes]` against target `[rows]`, and `log(sum(exp(logits)))`.

    Both are float32; the loss is `[rows]` for reduction "none" and 0-dim for "mean" and "sum". A target outside
    `[0, classes)` that is not ignore_index gives NaN. No row kept gives a mean of NaN.
    """
    return kernel.forward(logits, target, reduction, ignore_index, label_smoothing, lse_square_scale)


@cross_entropy.register_fake
def _(logits, target, reduction="mean", ignore_index=-100, label_smoothing=0.0, lse_square_scale=0.0):
    rows = logits.shape[:1]
    return (
        logits.new_empty(rows if reduction == "none" else (), dtype=torch.float32),
        logits.new_empty(rows, dtype=torch.float32),
    )


@torch.library.custom_op("ops::cross_entropy_backward", mutates_args=())
def cross_entropy_backward(
    grad_loss: torch.Tensor | None,
    grad_lse: torch.Tensor | None,
    logits: torch.Tensor,
    target: torch.Tensor,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    lse_square_scale: float,
) -> torch.Tensor:
    """Return the gradient of logits."""
    return kernel.backward(
        grad_loss, grad_lse, logits, target, reduction, ignore_index, label_smoothing, lse_square_scale
    )


@cross_entropy_backward.register_fake
def _(grad_loss, grad_lse, logits, target, reduction, ignore_index, label_smoothing, lse_square_scale):
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    """Keep the inputs; an output that nobody used has no upstream gradient, and costs nothing."""
    logits, target, *ctx.options = inputs
    ctx.save_for_backward(logits, target)
    ctx.set_materialize_grads(False)


def backward(ctx, grad_loss, grad_lse):
    """Give the gradients of (logits, target, reduction, ignore_index, label_smoothing, lse_square_scale)."""
    if grad_loss is None and grad_lse is None:
        return (None,) * 6
    return cross_entropy_backward(grad_loss, grad_lse, *ctx.saved_tensors, *ctx.options), None, None, None, None, None


cross_entropy.register_autograd(backward, setup_context=setup_context)
