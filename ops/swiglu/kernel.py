"""SwiGLU, the gated unit `silu(gate) * up`: Triton kernels and their launches.

Forward (Shazeer, 2020, equation 5): `y = gate * s * up`, `s = sigmoid(gate)`.
Backward: `dgate = grad * up * s * (1 + gate * (1 - s))`, `dup = grad * gate * s`.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs

MAX_BLOCK = 1024


@triton.jit
def _sigmoids(x):
    """Return sigmoid(x) and sigmoid(-x) = 1 - sigmoid(x), neither with overflow nor with cancellation."""
    e = tl.exp(-tl.abs(x))
    inverse = 1.0 / (1.0 + e)
    return tl.where(x >= 0, inverse, e * inverse), tl.where(x >= 0, e * inverse, inverse)


@triton.jit
def _forward_kernel(gate_ptr, up_ptr, y_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    s, _ = _sigmoids(gate)
    tl.store(y_ptr + at, gate * s * up, mask=at < size)


@triton.jit
def _backward_kernel(grad_ptr, gate_ptr, up_ptr, grad_gate_ptr, grad_up_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    s, complement = _sigmoids(gate)
    tl.store(grad_gate_ptr + at, grad * up * (s * (1.0 + gate * complement)), mask=at < size)
    tl.store(grad_up_ptr + at, grad * (gate * s), mask=at < size)


def forward(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Compute `silu(gate) * up` elementwise for gate and up `[..., cols]`; contiguous, in their common dtype."""
    check_inputs("swiglu", gate=gate, up=up)
    if gate.shape != up.shape or gate.dtype != up.dtype:
        raise ValueError(
            f"swiglu: gate {gate.dtype} {list(gate.shape)} and up {up.dtype} {list(up.shape)} should be alike"
        )
    y = torch.empty_like(gate, memory_format=torch.contiguous_format)
    size = y.numel()
    if size:
        block = min(triton.next_power_of_2(size), MAX_BLOCK)
        with torch.cuda.device_of(gate):
            _forward_kernel[(triton.cdiv(size, block),)](gate.contiguous(), up.contiguous(), y, size, BLOCK=block)
    return y


def backward(grad: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of gate and up, both `[..., cols]`."""
    grad_gate = torch.empty_like(gate, memory_format=torch.contiguous_format)
    grad_up = torch.empty_like(up, memory_format=torch.contiguous_format)
    size = gate.numel()
    if size:
        block = min(triton.next_power_of_2(size), MAX_BLOCK)
        with torch.cuda.device_of(gate):
            _backward_kernel[(triton.cdiv(size, block),)](
                grad.contiguous(), gate.contiguous(), up.contiguous(), grad_gate, grad_up, size, BLOCK=block
            )
    return grad_gate, grad_up
