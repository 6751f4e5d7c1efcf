"""Linear layer in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Apply torch's linear: a matmul with float32 accumulation, rounded to x's dtype."""
    return torch.nn.functional.linear(x, weight, bias)


def golden(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Compute `x @ weight^T + bias`."""
    return x @ weight.mT + bias


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, k]`, weight `[n, k]` and bias `[n]`."""
    return Sample(
        case.tensor("...", "rows", "k", name="x"), case.tensor("n", "k", name="weight"), case.tensor("n", name="bias")
    )
