"""Quantization of rows to int8 in eager PyTorch: the reference, the unrounded FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample

from .._quantize import LEAST
from .kernel import LARGEST


def reference(x: torch.Tensor, clip: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale in float32 and round, ties to even; NaN, of which integers have none, becomes 0 under a scale of NaN."""
    value, scale = golden(x.float(), clip)
    return value.round().nan_to_num(0.0).to(torch.int8), scale


def golden(x: torch.Tensor, clip: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `x / scale` in units of the grid, not rounded, and `scale`, in x's dtype; NaN spreads over its row."""
    widest = x.abs().amax(-1, keepdim=True).clamp(min=LEAST, max=clip)
    # On CUDA torch divides by a Python number through its reciprocal, which is off by an ulp and breaks ties.
    scale = widest / torch.full_like(widest, LARGEST)
    return (x / scale).clamp(-LARGEST, LARGEST), scale


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))
