"""Liger's softmax, sparsemax, rotary embedding and embedding."""

import torch
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.sparsemax import LigerSparsemaxFunction

from opcheck import Case, Sample, adopt


def rows(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Compute softmax over the last dimension."""
    return LigerSoftmaxFunction.apply(x)


def softmax_reference(x):
    """Apply torch's softmax."""
    return torch.softmax(x, -1)


def softmax_golden(x):
    """Compute `exp(x - max) / sum(exp(x - max))`."""
    e = torch.exp(x - x.amax(-1, keepdim=True).detach())
    return e / e.sum(-1, keepdim=True)


def sparsemax(x: torch.Tensor) -> torch.Tensor:
    """Project each row on the simplex."""
    return LigerSparsemaxFunction.apply(x, -1)


def sparsemax_golden(x):
    """Compute `max(x - tau, 0)`, tau from the sorted row (arXiv 1602.02068, algorithm 1)."""
    ordered = x.sort(-1, descending=True).values
    places = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    support = 1 + places * ordered > ordered.cumsum(-1)
    tau = ((ordered * support).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return (x - tau).clamp_min(0)


def sparsemax_reference(x):
    """Do the same in float32 and round once."""
    return sparsemax_golden(x.float()).to(x.dtype)


def rope(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotate the halves of each head of q and k `[batch, heads, seq, dim]`."""
    return LigerRopeFunction.apply(q, k, cos, sin)


def rope_golden(q, k, cos, sin):
    """Compute `x * cos + rotate_half(x) * sin`."""

    def rotated(x):
        first, second = x.chunk(2, -1)
        return x * cos.detach() + torch.cat((-second, first), -1) * sin.detach()

    return rotated(q), rotated(k)


def rope_reference(q, k, cos, sin):
    """Do the same in the dtype of cos and sin, as the models do."""
    return tuple(out.to(q.dtype) for out in rope_golden(q, k, cos, sin))


def rope_samples(case: Case) -> Sample:
    """Draw q `[batch, heads, seq, dim]`, k `[batch, kv_heads, seq, dim]`, and duplicated tables `[1, seq, dim]`."""
    q = case.tensor("batch", "heads", "seq", "dim", name="q")
    k = case.tensor("batch", "kv_heads", "seq", "dim", name="k")
    half = case.dims["dim"] // 2
    rates = 10000.0 ** -(torch.arange(half, dtype=torch.float32) / max(half, 1))
    angles = torch.arange(case.dims["seq"], dtype=torch.float32)[:, None] * rates
    table = torch.cat((angles, angles), -1)[None].to(q.device)
    return Sample(q, k, table.cos().to(q.dtype), table.sin().to(q.dtype))


def embedding(weight: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Look rows of weight up."""
    return LigerEmbeddingFunction.apply(weight, indices)


def embedding_golden(weight, indices):
    """Index."""
    return weight[indices]


def embedding_reference(weight, indices):
    """Apply torch's embedding."""
    return torch.nn.functional.embedding(indices, weight)


def embedding_samples(case: Case) -> Sample:
    """Draw weight `[rows, dim]` and indices `[tokens]`."""
    weight = case.tensor("rows", "dim", name="weight")
    return Sample(weight, case.integers(0, max(case.dims["rows"], 1), "tokens", name="indices"))


adopt(softmax, name="liger::softmax", reference=softmax_reference, golden=softmax_golden, samples=rows)
adopt(sparsemax, name="liger::sparsemax", reference=sparsemax_reference, golden=sparsemax_golden, samples=rows)
adopt(rope, name="liger::rope", reference=rope_reference, golden=rope_golden, samples=rope_samples)
adopt(
    embedding,
    name="liger::embedding",
    reference=embedding_reference,
    golden=embedding_golden,
    samples=embedding_samples,
)
