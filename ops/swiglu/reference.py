"""SwiGLU in eager PyTorch: the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Compute silu and the product in float32 and round once to gate's dtype."""
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)


def golden(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Compute `silu(gate) * up`, silu(gate) = gate * sigmoid(gate)."""
    return torch.nn.functional.silu(gate) * up


def samples(case: Case) -> Sample:
    """Draw gate and up, both `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="gate"), case.tensor("...", "rows", "cols", name="up"))
