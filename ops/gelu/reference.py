"""GELU in eager PyTorch: the reference, the FP64 golden, and the samples."""

import math

import torch

from opcheck import Case, Sample


def reference(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Compute in float32 and round once to x's dtype.

    Not torch's own exact form: its `1 + erf` cancels for negative x, and on the CPU it gives NaN for +Inf.
    """
    wide = x.float()
    if approximate == "tanh":
        return torch.nn.functional.gelu(wide, approximate="tanh").to(x.dtype)
    return (wide * torch.special.erfc(-wide * math.sqrt(0.5)) * 0.5).to(x.dtype)


def golden(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Compute `x * erfc(-x / sqrt(2)) / 2`, or `x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))`.

    Neither form cancels for negative x, as `1 + erf` and `1 + tanh` do.
    """
    if approximate == "tanh":
        return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return x * torch.special.erfc(-x / math.sqrt(2)) / 2


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))
