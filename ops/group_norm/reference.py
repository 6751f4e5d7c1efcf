"""Group normalization in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(
    x: torch.Tensor, groups: int, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Apply torch's own group_norm in float32 and round once to x's dtype."""
    return torch.group_norm(x.float(), groups, weight.float(), bias.float(), eps).to(x.dtype)


def golden(x: torch.Tensor, groups: int, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Compute `(x - mean) / sqrt(variance + eps) * weight + bias`, mean and variance per sample and group."""
    grouped = x.unflatten(1, (groups, -1)).flatten(2)
    centered = grouped - grouped.mean(-1, keepdim=True)
    normalized = centered / torch.sqrt(centered.square().mean(-1, keepdim=True) + eps)
    per_channel = (-1, *[1] * (x.dim() - 2))
    return normalized.reshape(x.shape) * weight.reshape(per_channel) + bias.reshape(per_channel)


def samples(case: Case) -> Sample:
    """Draw x `[batch, channels, ..., length]`, the contract's leading dimensions inside; weight and bias `[channels]`.

    The groups are 4, 3 or 2 of several channels each, or one per channel where there are no such.
    """
    channels = case.dims["channels"]
    groups = next((count for count in (4, 3, 2) if channels % count == 0 and channels > count), channels)
    x = case.tensor("batch", "channels", "...", "length", name="x")
    return Sample(x, groups, case.tensor("channels", name="weight"), case.tensor("channels", name="bias"))
