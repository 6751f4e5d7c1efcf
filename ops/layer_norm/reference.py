"""Layer normalization in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Apply torch's layer_norm to x `[..., cols]` in float32 and round once to x's dtype."""
    return torch.nn.functional.layer_norm(x.float(), x.shape[-1:], weight.float(), bias.float(), eps).to(x.dtype)


def golden(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Compute `(x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias`."""
    centered = x - x.mean(-1, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(-1, keepdim=True) + eps) * weight + bias


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`, weight and bias `[cols]`."""
    return Sample(
        case.tensor("...", "rows", "cols", name="x"),
        case.tensor("cols", name="weight"),
        case.tensor("cols", name="bias"),
        eps=1e-5,
    )
