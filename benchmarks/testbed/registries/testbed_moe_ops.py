"""moe-ops 0.1.0: routing, permutation, and grouped matrix products."""

import moe_ops
import testbed_formulas as formulas
import torch
from moe_ops.grouped_gemm_ops import grouped_gemm as portable_grouped_gemm

from opcheck import Case, Sample, adopt


def fused_topk_softmax(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the softmax over the k largest logits of each row, and where they are."""
    return moe_ops.fused_topk_softmax(logits, k)


def fused_topk_softmax_golden(logits, k):
    """Sort, take k, apply softmax; equal logits keep their order."""
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, :k]
    return logits.gather(1, order).softmax(-1), order.to(torch.int32)


def fused_topk_softmax_reference(logits, k):
    """Do the same in float32; the op keeps its output for backward, and so does this."""
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, :k]
    return formulas.RoundedSoftmax.apply(logits.gather(1, order)), order.to(torch.int32)


def fused_topk_softmax_samples(case: Case) -> Sample:
    """Draw logits `[tokens, experts]`; k is at most 2."""
    return Sample(case.tensor("tokens", "experts", name="logits"), min(2, case.dims["experts"]))


def permute(x: torch.Tensor, indices: torch.Tensor, experts: int) -> tuple[torch.Tensor, ...]:
    """Bring the tokens of each expert together; return each slot's row, the expert among whose rows it is, all places.

    In which order the slots of an expert come is left open, and on a GPU left to its programs: the results are put into
    the order of the slots (slot-major), the places are sorted. Last come the ends of the experts.
    """
    rows, row_id_map, offsets = moe_ops.permute(x, indices, 0, experts)
    places = row_id_map.long()
    return rows[places], torch.searchsorted(offsets, places, right=True) - 1, places.sort().values, offsets


def permute_golden(x, indices, experts):
    """Repeat x for each slot: each lies among its expert's rows, every place is taken once."""
    flat = indices.T.reshape(-1).long()
    counts = torch.bincount(flat, minlength=experts)
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    return x.repeat(indices.shape[1], 1), flat, torch.arange(len(flat), device=x.device), offsets.to(torch.int32)


def permute_samples(case: Case) -> Sample:
    """Draw x `[tokens, hidden]` and two experts for each token."""
    x = case.tensor("tokens", "hidden", name="x")
    indices = case.integers(0, case.dims["experts"], "tokens", "slots", name="indices")
    return Sample(x, indices.to(torch.int32), case.dims["experts"])


def unpermute(x: torch.Tensor, row_id_map: torch.Tensor, prob: torch.Tensor) -> torch.Tensor:
    """Add the weighted outputs of each token's experts up."""
    return moe_ops.unpermute(x, row_id_map, prob, *prob.shape)


def unpermute_golden(x, row_id_map, prob):
    """Gather each slot's row and add up."""
    rows = x[row_id_map.reshape(prob.shape[1], prob.shape[0]).T.reshape(-1).long()]
    return (rows.reshape(*prob.shape, x.shape[1]) * prob[..., None]).sum(1)


def unpermute_reference(x, row_id_map, prob):
    """Do the same in float32 and round once."""
    return unpermute_golden(x.float(), row_id_map, prob.float()).to(x.dtype)


def unpermute_samples(case: Case) -> Sample:
    """Draw x `[tokens * 2, hidden]` in the order of the experts, a permutation, and probabilities `[tokens, 2]`."""
    tokens, slots = case.dims["tokens"], case.dims["slots"]
    prob = case.tensor("tokens", "slots", name="prob")
    x = case.tensor("tokens", "slots", "hidden", name="x").reshape(tokens * slots, case.dims["hidden"])
    places = torch.randperm(tokens * slots, generator=case.generator).to(torch.int32).to(x.device)
    return Sample(x, places, prob)


def grouped_gemm(a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Multiply the rows of each expert by its weight; off the GPU by the sm80 kernel, for the choice asks the GPU."""
    return (moe_ops.grouped_gemm if a.is_cuda else portable_grouped_gemm)(a, b, offsets)


def grouped_gemm_golden(a, b, offsets):
    """Multiply group by group."""
    ends = offsets.tolist()
    parts = [a[start:end] @ weight.T for start, end, weight in zip(ends, ends[1:], b.unbind(), strict=False)]
    return torch.cat(parts)


def grouped_gemm_reference(a, b, offsets):
    """Do the same in float32 and round once."""
    return grouped_gemm_golden(a.float(), b.float(), offsets).to(a.dtype)


def grouped_gemm_samples(case: Case) -> Sample:
    """Draw a `[tokens, k]`, b `[experts, n, k]`, and where each expert's rows begin and end."""
    return Sample(
        case.tensor("tokens", "k", name="a"),
        case.tensor("experts", "n", "k", name="b"),
        case.offsets(case.dims["tokens"], case.dims["experts"], name="offsets"),
    )


adopt(
    fused_topk_softmax,
    name="moe_ops::fused_topk_softmax",
    reference=fused_topk_softmax_reference,
    golden=fused_topk_softmax_golden,
    samples=fused_topk_softmax_samples,
)
adopt(permute, name="moe_ops::permute", reference=permute_golden, golden=permute_golden, samples=permute_samples)
adopt(
    unpermute,
    name="moe_ops::unpermute",
    reference=unpermute_reference,
    golden=unpermute_golden,
    samples=unpermute_samples,
)
adopt(
    grouped_gemm,
    name="moe_ops::grouped_gemm",
    reference=grouped_gemm_reference,
    golden=grouped_gemm_golden,
    samples=grouped_gemm_samples,
)
