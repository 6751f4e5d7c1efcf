"""Rotary position embedding in eager PyTorch: the references, the FP64 goldens, and the samples."""

import torch

from opcheck import Case, Sample

BASE = 10000.0  # Su et al., 2021, section 3.2.2


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False) -> torch.Tensor:
    """Rotate `x * cos + rotate_half(x) * sin` in float32 and round once to x's dtype."""
    rot = 2 * cos.shape[1]
    turned, rest = x[..., :rot].float(), x[..., rot:]
    if interleaved:
        cos, sin = (table.float().repeat_interleave(2, -1)[:, None] for table in (cos, sin))
        partner = torch.stack((-turned[..., 1::2], turned[..., ::2]), -1).flatten(-2)
    else:
        cos, sin = (table.float().repeat(1, 2)[:, None] for table in (cos, sin))
        partner = torch.cat((-turned[..., rot // 2 :], turned[..., : rot // 2]), -1)
    return torch.cat(((turned * cos + partner * sin).to(x.dtype), rest), -1)


def golden(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False) -> torch.Tensor:
    """Compute `(a * cos - b * sin, b * cos + a * sin)` of every pair."""
    half = cos.shape[1]
    at = torch.arange(half, device=x.device)
    at_a, at_b = (2 * at, 2 * at + 1) if interleaved else (at, half + at)
    a, b, cos, sin = x[..., at_a], x[..., at_b], cos[:, None], sin[:, None]
    return x.index_copy(3, at_a, a * cos - b * sin).index_copy(3, at_b, b * cos + a * sin)


def reference_in_place(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False) -> None:
    """Write what `reference` gives into x."""
    x.copy_(reference(x, cos, sin, interleaved))


def golden_in_place(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False) -> None:
    """Write what `golden` gives into x."""
    x.copy_(golden(x, cos, sin, interleaved))


def samples(case: Case) -> Sample:
    """Draw x `[batch, seq, heads, dim]`; cos and sin `[seq, rot / 2]` are those of the positions.

    All of dim is rotated where it is a multiple of 4, otherwise about half of it.
    """
    x = case.tensor("batch", "seq", "heads", "dim", name="x")
    dim, seq = case.dims["dim"], case.dims["seq"]
    half = dim // 2 if dim % 4 == 0 else (dim + 2) // 4
    frequencies = BASE ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.outer(torch.arange(seq, dtype=torch.float64), frequencies).to(case.device)
    cos, sin = (
        table.to(getattr(torch, case.dtype_of(name))) for name, table in (("cos", angles.cos()), ("sin", angles.sin()))
    )
    return Sample(x, cos, sin)
