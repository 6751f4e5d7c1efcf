"""Parametric ReLU in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Apply torch's own prelu in float32 and round once to x's dtype."""
    return torch.nn.functional.prelu(x.float(), weight.float()).to(x.dtype)


def golden(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Compute `x where x > 0, weight * x elsewhere`; +Inf does not reach the product, nor its gradient."""
    slope = weight.reshape(-1, *[1] * (x.dim() - 2)) if weight.numel() > 1 else weight
    return torch.where(x > 0, x, slope * torch.where(x > 0, 0.0, x))


def samples(case: Case) -> Sample:
    """Draw x `[batch, channels, ..., length]`, the contract's leading dimensions inside, and weight `[channels]`.

    Where there are leading dimensions the weight is `[1]`.
    """
    x = case.tensor("batch", "channels", "...", "length", name="x")
    if case.dims.leading:
        return Sample(x, case.tensor(name="weight").reshape(1))
    return Sample(x, case.tensor("channels", name="weight"))
