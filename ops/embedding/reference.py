"""Embedding lookup in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int | None = None) -> torch.Tensor:
    """Apply torch's own embedding in float32, so that gradients of one row add up there; the rows are exact."""
    return torch.nn.functional.embedding(indices, weight.float(), padding_idx).to(weight.dtype)


def golden(weight: torch.Tensor, indices: torch.Tensor, padding_idx: int | None = None) -> torch.Tensor:
    """Compute `weight[indices]`, the row padding_idx a constant."""
    if padding_idx is not None:
        constant = torch.zeros(len(weight), 1, dtype=torch.bool, device=weight.device)
        constant[padding_idx] = True
        weight = torch.where(constant, weight.detach(), weight)
    return weight[indices]


def samples(case: Case) -> Sample:
    """Draw weight `[rows, dim]` and indices `[..., tokens]` into its rows; of none, no index is right."""
    weight = case.tensor("rows", "dim", name="weight")
    return Sample(weight, case.integers(0, max(case.dims["rows"], 1), "...", "tokens", name="indices"))
