"""Attention in eager PyTorch, batched and packed: the references, the FP64 goldens, and the samples."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from opcheck import Case, Sample

DIGITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}  # of a significand, with the hidden one

Attention = tuple[torch.Tensor, torch.Tensor]


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    softcap: float = 0.0,
    scale: float | None = None,
) -> Attention:
    """Weigh in float32, round what is an operand of a matmul to the type of the other one, and the result once.

    Operands are the weights and, in the backward, the gradients of the logits.
    """
    group = q.shape[-3] // k.shape[-3]
    keys, values = (x.float().repeat_interleave(group, -3) for x in (k, v))
    products = _GradientAsOperand.apply(q.float() @ keys.mT, q.dtype)
    logits = products * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    hidden = ~_seen(q, k, causal)
    logits = logits.masked_fill(hidden, -torch.inf)
    weights = logits.softmax(-1).masked_fill(hidden, 0.0)
    return (weights.to(v.dtype).float() @ values).to(q.dtype), logits.logsumexp(-1)


def golden(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    softcap: float = 0.0,
    scale: float | None = None,
) -> Attention:
    """Compute `sum_j exp(s_ij) v_j / sum_j exp(s_ij)` and `log(sum_j exp(s_ij))` over the keys j that query i sees.

    `s = scale * q @ k^T`, or `softcap * tanh(s / softcap)`. A query that sees no key gives 0 and -Inf.
    """
    grouped = q.unflatten(-3, (k.shape[-3], -1))
    s = torch.einsum("...hgqd,...hkd->...hgqk", grouped, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    seen = _seen(q, k, causal)
    s = torch.where(seen, s, -torch.inf)
    lowest = torch.finfo(s.dtype).min
    maximum = torch.nn.functional.pad(s.detach(), (0, 1), value=lowest).amax(-1, keepdim=True)
    e = torch.exp(s - maximum)
    any_seen = seen.any(-1)
    total = torch.where(any_seen, e.sum(-1), 1.0)
    out = torch.einsum("...hgqk,...hkd->...hgqd", e, v) / total[..., None]
    lse = torch.where(any_seen, maximum[..., 0] + total.log(), -torch.inf)
    return out.flatten(-4, -3), lse.flatten(-3, -2)


def samples(case: Case) -> Sample:
    """Draw q `[..., heads, queries, head_dim]`, k and v `[..., kv_heads, keys, head_dim]`."""
    case = _with_sizes(case, heads=case.dims["kv_heads"] * case.dims["group"])
    return Sample(
        case.tensor("...", "heads", "queries", "head_dim", name="q"),
        *(case.tensor("...", "kv_heads", "keys", "head_dim", name=name) for name in ("k", "v")),
    )


def reference_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    causal: bool = False,
    softcap: float = 0.0,
    scale: float | None = None,
) -> Attention:
    """Apply `reference` to one sequence after the other."""
    return _by_sequence(reference, q, k, v, cu_seqlens_q, cu_seqlens_k, causal, softcap, scale)


def golden_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    causal: bool = False,
    softcap: float = 0.0,
    scale: float | None = None,
) -> Attention:
    """Compute `golden` of one sequence after the other."""
    return _by_sequence(golden, q, k, v, cu_seqlens_q, cu_seqlens_k, causal, softcap, scale)


def samples_varlen(case: Case) -> Sample:
    """Draw q `[tokens, heads, head_dim]`, k and v `[keys, kv_heads, head_dim]`, and where their sequences begin.

    One, two or three query heads share a key head. The keys are one more for each sequence than the queries.
    """
    kv_heads, sequences, tokens = (case.dims[name] for name in ("kv_heads", "sequences", "tokens"))
    case = _with_sizes(case, heads=kv_heads * (1 + kv_heads % 3), keys=tokens + sequences)
    return Sample(
        case.tensor("tokens", "heads", "head_dim", name="q"),
        *(case.tensor("keys", "kv_heads", "head_dim", name=name) for name in ("k", "v")),
        case.offsets(tokens, sequences, name="cu_seqlens_q"),
        case.offsets(tokens + sequences, sequences, name="cu_seqlens_k"),
    )


class _GradientAsOperand(torch.autograd.Function):
    """Pass float32 numbers on, and round their gradients to the digits of a type, not to its range.

    With the splitting of Dekker (1971, Veltkamp's): `c = (2^s + 1) g; c - (c - g)` is g rounded to 24 - s bits.
    """

    @staticmethod
    def forward(ctx, x, dtype):
        ctx.factor = 2.0 ** (24 - DIGITS[dtype]) + 1.0
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        larger = grad * ctx.factor
        rounded = larger - (larger - grad)
        return torch.where(rounded.isfinite(), rounded, grad), None


def _seen(q: torch.Tensor, k: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return which keys a query sees, `[queries, keys]`: all, or where causal the last query all, others fewer."""
    queries, keys = q.shape[-2], k.shape[-2]
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
    return seen.tril(keys - queries) if causal else seen


def _by_sequence(
    attend: Callable[..., Attention],
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    *options: Any,
) -> Attention:
    """Cut the packed tensors by their offsets, attend, and put the results together again."""
    packed = ((q, cu_seqlens_q), (k, cu_seqlens_k), (v, cu_seqlens_k))
    parts = zip(*(x.transpose(0, 1).tensor_split(at[1:-1].long().cpu(), 1) for x, at in packed), strict=True)
    outs, lses = zip(*(attend(*part, *options) for part in parts), strict=True)
    return torch.cat(outs, 1).transpose(0, 1), torch.cat(lses, 1).transpose(0, 1)


def _with_sizes(case: Case, **sizes: int) -> Case:
    """Return the case with sizes that follow from the contract's."""
    dims = case.dims
    for name, size in sizes.items():
        dims = dims.with_size(name, size)
    return replace(case, dims=dims)
