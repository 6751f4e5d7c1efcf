"""`ops::attention` and `ops::attention_varlen`: flash attention, batched and of packed sequences."""

import torch

import opcheck

from . import kernel
from .reference import golden, golden_varlen, reference, reference_varlen, samples, samples_varlen


@opcheck.register("ops::attention", reference=reference, golden=golden, samples=samples)
def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    softcap: float = 0.0,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attend from q `[..., heads, queries, head_dim]` to k and v `[..., kv_heads, keys, head_dim]`.

    Returns the output, as q, and `lse = log(sum(exp(logits)))` `[..., heads, queries]` in float32. Query head h reads
    key head `h // (heads / kv_heads)`. Where causal, the last query sees all keys, and each one before it a key less; a
    query that sees none gives 0 and -Inf, and no gradient. softcap 0 is none; scale None is `head_dim ** -0.5`.
    """
    return kernel.forward(q, k, v, (causal, softcap, scale))


@opcheck.register("ops::attention_varlen", reference=reference_varlen, golden=golden_varlen, samples=samples_varlen)
def attention_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    causal: bool = False,
    softcap: float = 0.0,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do what `attention` does within sequences that are packed one after the other, of queries and of keys.

    q is `[total_q, heads, head_dim]`, k and v are `[total_k, kv_heads, head_dim]`; sequence i is from `cu_seqlens[i]`
    to `cu_seqlens[i + 1]`, int32 `[sequences + 1]`, from 0 to the total; it may be empty, in one of them or in both.
    Returns the output, as q, and lse `[total_q, heads]` in float32.
    """
    return kernel.forward(q, k, v, (causal, softcap, scale), (cu_seqlens_q, cu_seqlens_k))


def _fake(q, *args, **kwargs):
    return (
        torch.empty_like(q, memory_format=torch.contiguous_format),
        q.new_empty(q.shape[:-1], dtype=torch.float32),
    )


attention.register_fake(_fake)
attention_varlen.register_fake(_fake)


@torch.library.custom_op("ops::attention_backward", mutates_args=())
def attention_backward(
    grad: torch.Tensor | None,
    grad_lse: torch.Tensor | None,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    cu_seqlens_q: torch.Tensor | None,
    cu_seqlens_k: torch.Tensor | None,
    causal: bool,
    softcap: float,
    scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of q, k and v, batched or packed."""
    offsets = None if cu_seqlens_q is None or cu_seqlens_k is None else (cu_seqlens_q, cu_seqlens_k)
    return kernel.backward(grad, grad_lse, q, k, v, out, lse, (causal, softcap, scale), offsets)


@attention_backward.register_fake
def _(grad, grad_lse, q, k, v, *args):
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))


def setup_context(ctx, inputs, output):
    """Keep inputs and outputs; an output that nobody used has no upstream gradient, and costs nothing."""
    *tensors, ctx.causal, ctx.softcap, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def backward(ctx, grad, grad_lse):
    """Give the gradients of (q, k, v, causal, softcap, scale), for packed sequences with both offsets after v."""
    q, k, v, *offsets, out, lse = ctx.saved_tensors
    rest = (None,) * (len(offsets) + 3)
    if grad is None and grad_lse is None:
        return None, None, None, *rest
    offsets = offsets or (None, None)
    gradients = attention_backward(grad, grad_lse, q, k, v, out, lse, *offsets, ctx.causal, ctx.softcap, ctx.scale)
    return *gradients, *rest


attention.register_autograd(backward, setup_context=setup_context)
attention_varlen.register_autograd(backward, setup_context=setup_context)
