"""Quantization of rows to float8_e4m3fn: the launch."""

import torch

from .. import _quantize

LARGEST = 448.0


def forward(x: torch.Tensor, clip: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantize x `[..., cols]` of float32, float16 or bfloat16; the scales are `[..., 1]`."""
    return _quantize.quantize("quantize_fp8", x, clip, torch.float8_e4m3fn, LARGEST)


def allocate(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate what `forward` gives for x."""
    return _quantize.empty(x, torch.float8_e4m3fn)
