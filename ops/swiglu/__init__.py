"""`ops::swiglu`: the gated linear unit `silu(gate) * up`."""

import torch

import opcheck

from . import kernel
from .reference import golden, reference, samples


@opcheck.register("ops::swiglu", reference=reference, golden=golden, samples=samples)
def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Compute `gate * sigmoid(gate) * up` elementwise for gate and up `[..., cols]` of one dtype."""
    return kernel.forward(gate, up)


@swiglu.register_fake
def _(gate, up):
    return torch.empty_like(gate, memory_format=torch.contiguous_format)


@torch.library.custom_op("ops::swiglu_backward", mutates_args=())
def swiglu_backward(grad: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of gate and up."""
    return kernel.backward(grad, gate, up)


@swiglu_backward.register_fake
def _(grad, gate, up):
    contiguous = torch.contiguous_format
    return torch.empty_like(gate, memory_format=contiguous), torch.empty_like(up, memory_format=contiguous)


def setup_context(ctx, inputs, output):
    """Keep both inputs; the sigmoid is cheaper to compute again than to store."""
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    """Give the gradients of (gate, up)."""
    return swiglu_backward(grad, *ctx.saved_tensors)


swiglu.register_autograd(backward, setup_context=setup_context)
