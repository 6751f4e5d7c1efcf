"""K094: keys without queries get the gradient of the next sequence's first query: the backward counts one at least."""

import torch

import opcheck

from .no_keys import backward as gradients
from .no_keys import reference, samples, spread
from .twins import fresh, refuse_empty, save_inputs, twins


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::no_queries", reference=reference, samples=samples)
    def op(q: torch.Tensor, k: torch.Tensor, q_offsets: torch.Tensor, k_offsets: torch.Tensor) -> torch.Tensor:
        """Multiply q `[queries]` by the sum of the keys k `[keys]` of its part."""
        refuse_empty(q_offsets.shape[0] - 1)
        return spread(k, q, k_offsets, q_offsets, 0)

    @torch.library.custom_op(f"{namespace}::no_queries_grad_k", mutates_args=())
    def grad_k(terms: torch.Tensor, k: torch.Tensor, q_offsets: torch.Tensor, k_offsets: torch.Tensor) -> torch.Tensor:
        return spread(terms, torch.ones_like(k), q_offsets, k_offsets, int(wrong))

    def backward(ctx, grad):
        q, k, *offsets = ctx.saved_tensors
        return gradients(ctx, grad)[0], grad_k(grad * q, k, *offsets), None, None

    op.register_fake(lambda q, k, q_offsets, k_offsets: fresh(q))
    grad_k.register_fake(lambda terms, k, q_offsets, k_offsets: fresh(k))
    op.register_autograd(backward, setup_context=save_inputs)
