"""Quantization of rows to float8_e4m3fn in eager PyTorch: the reference, the unrounded FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample

from .._quantize import LEAST
from .kernel import LARGEST


def reference(x: torch.Tensor, clip: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale in float32 and cast, which rounds ties to even; NaN stays NaN."""
    value, scale = golden(x.float(), clip)
    return value.to(torch.float8_e4m3fn), scale


def golden(x: torch.Tensor, clip: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `x / scale` in units of the grid, not rounded, and `scale`, in x's dtype; NaN spreads over its row."""
    widest = x.abs().amax(-1, keepdim=True).clamp(min=LEAST, max=clip)
    # On CUDA torch divides by a Python number through its reciprocal, which is off by an ulp and breaks ties.
    scale = widest / torch.full_like(widest, LARGEST)
    return (x / scale).clamp(-LARGEST, LARGEST), scale


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))
