"""`ops::quantize_int8`: rows to int8, each by a scale of its own."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::quantize_int8", reference=reference, golden=golden, samples=samples)
def quantize_int8(x: torch.Tensor, clip: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Round `x / scale` for x `[..., cols]` to the nearest of -127 to 127, ties to even; give the scales `[..., 1]`.

    `scale = min(max|x|, clip) / 127` in float32; what lies beyond `clip` saturates. `q * scale` is x again, about.
    There is no backward: rounding has no derivative, and a straight-through estimator is its caller's choice.
    """
    return kernel.forward(x, clip)


@quantize_int8.register_fake
def _(x, clip=None):
    return kernel.allocate(x)
