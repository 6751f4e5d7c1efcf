"""`ops::moe_permute`: tokens in the order of the experts that they are sent to."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::moe_permute", reference=reference, golden=golden, samples=samples)
def moe_permute(
    tokens: torch.Tensor, expert_ids: torch.Tensor, experts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Copy tokens `[tokens, hidden]` to the experts in expert_ids `[tokens, topk]`, expert by expert.

    Gives the copies `[tokens * topk, hidden]`, of one expert in the order of the tokens; the row `[tokens, topk]` of
    each copy; and where the rows of each expert begin, `[experts + 1]`, an expert's end being the next one's beginning.
    Both are int64. Copies for an id outside `[0, experts)` come last.
    """
    return kernel.forward(tokens, expert_ids, experts)


@moe_permute.register_fake
def _(tokens, expert_ids, experts):
    return (
        tokens.new_empty(expert_ids.shape[0] * expert_ids.shape[1], tokens.shape[1]),
        expert_ids.new_empty(expert_ids.shape, dtype=torch.int64),
        expert_ids.new_empty(experts + 1, dtype=torch.int64),
    )


@torch.library.custom_op("ops::moe_permute_backward", mutates_args=())
def moe_permute_backward(grad: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the gradient of tokens."""
    return kernel.backward(grad, rows)


@moe_permute_backward.register_fake
def _(grad, rows):
    return grad.new_empty(rows.shape[0], grad.shape[1])


def setup_context(ctx, inputs, output):
    """Keep the row of each copy."""
    ctx.save_for_backward(output[1])


def backward(ctx, grad, grad_rows, grad_starts):
    """Give the gradient of (tokens, expert_ids, experts)."""
    return moe_permute_backward(grad, *ctx.saved_tensors), None, None


moe_permute.register_autograd(backward, setup_context=setup_context)
