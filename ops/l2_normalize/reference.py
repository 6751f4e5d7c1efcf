"""Division by the Euclidean norm in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Divide by the norm in float32, of rows divided by their largest element first, and round once to x's dtype.

    So no square overflows; torch.nn.functional.normalize gives zeros where the sum of squares does.
    """
    wide = x.float()
    largest = wide.abs().amax(-1, keepdim=True).detach().clamp(min=2.0**-100)
    largest = torch.where(largest.isfinite(), largest, 1.0)
    scaled = wide / largest
    norm = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return (scaled / norm.clamp(min=eps / largest)).to(x.dtype)


def golden(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Apply torch.nn.functional.normalize, `x / max(norm, eps)`; a row of zeros has the gradient `grad / eps`."""
    return torch.nn.functional.normalize(x, dim=-1, eps=eps)


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), eps=1e-12)
