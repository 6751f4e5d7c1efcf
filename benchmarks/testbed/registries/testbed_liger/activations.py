"""Liger's gated activations; their backward writes the gradients over the saved inputs, to save memory."""

import torch
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction
from liger_kernel.ops.swiglu import LigerFusedGateUpSiLUMulFunction, LigerSiLUMulFunction

from opcheck import Case, Sample, adopt


def gate_and_up(case: Case) -> Sample:
    """Draw gate and up `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="a"), case.tensor("...", "rows", "cols", name="b"))


def swiglu(a: torch.Tensor, b: torch.Tensor, gate_multiplier: float = 1.0) -> torch.Tensor:
    """Compute `silu(a * gate_multiplier) * b`."""
    return LigerSiLUMulFunction.apply(a, b, gate_multiplier)


def swiglu_reference(a, b, gate_multiplier=1.0):
    """Take silu in float32 and round it before the product, as a transformer's MLP does."""
    return torch.nn.functional.silu(a.float() * gate_multiplier).to(a.dtype) * b


def swiglu_golden(a, b, gate_multiplier=1.0):
    """Compute `z * sigmoid(z) * b` with `z = a * gate_multiplier`."""
    z = a * gate_multiplier
    return z * torch.sigmoid(z) * b


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute `gelu_tanh(a) * b`."""
    return LigerGELUMulFunction.apply(a, b)


def geglu_reference(a, b):
    """Take gelu in float32 and round it before the product."""
    return torch.nn.functional.gelu(a.float(), approximate="tanh").to(a.dtype) * b


def geglu_golden(a, b):
    """Compute `a * sigmoid(2 sqrt(2/pi) * (a + 0.044715 a^3)) * b`: `1 + tanh` would cancel far below 0."""
    return a * torch.sigmoid(2 * (2 / torch.pi) ** 0.5 * (a + 0.044715 * a**3)) * b


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """Compute `max(x, 0)^2`."""
    return LigerReLUSquaredFunction.apply(x)


def relu_squared_reference(x):
    """Compute `max(x, 0)^2` in x's own dtype."""
    return torch.nn.functional.relu(x).square()


def relu_squared_samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`."""
    return Sample(case.tensor("...", "rows", "cols", name="x"))


def fused_gate_up(y: torch.Tensor) -> torch.Tensor:
    """Compute `silu(gate) * up` of the two halves of y's last dimension."""
    return LigerFusedGateUpSiLUMulFunction.apply(y)


def fused_gate_up_reference(y):
    """Split and apply the reference of swiglu."""
    return swiglu_reference(*y.chunk(2, -1))


def fused_gate_up_golden(y):
    """Split and apply the golden of swiglu."""
    return swiglu_golden(*y.chunk(2, -1))


def fused_gate_up_samples(case: Case) -> Sample:
    """Draw gate and up side by side `[..., rows, cols]`, cols even."""
    return Sample(case.tensor("...", "rows", "cols", name="y"))


adopt(swiglu, name="liger::swiglu", reference=swiglu_reference, golden=swiglu_golden, samples=gate_and_up)
adopt(geglu, name="liger::geglu", reference=geglu_reference, golden=geglu_golden, samples=gate_and_up)
adopt(relu_squared, name="liger::relu_squared", reference=relu_squared_reference, samples=relu_squared_samples)
adopt(
    fused_gate_up,
    name="liger::fused_gate_up_silu",
    reference=fused_gate_up_reference,
    golden=fused_gate_up_golden,
    samples=fused_gate_up_samples,
)
