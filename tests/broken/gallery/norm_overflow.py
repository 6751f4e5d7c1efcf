"""`broken::norm_overflow`: the squares of a row overflow in float32, its norm does not, and the row becomes 0."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, SCALED: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    if SCALED:
        x = tl.where(tl.max(tl.abs(x)) > 2.0**50, x * 2.0**-100, x)
    norm = tl.maximum(tl.sqrt_rn(tl.sum(x * x)), 2.0**-40)
    tl.store(y_ptr + row * cols + at, x / norm, mask=at < cols)


def scaled(x):
    """Return a power of two for each row of x `[rows, cols]`, and its norm times that, at least 2^-40."""
    scale = torch.where(x.abs().amax(-1, keepdim=True) > 2.0**50, 2.0**-100, 1.0)
    return scale, torch.linalg.vector_norm(x * scale, dim=-1, keepdim=True).clamp(min=2.0**-40)


def reference(x):
    scale, norm = scaled(x)
    return x * scale / norm


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    scale, norm = scaled(x)
    y = x * scale / norm
    along = torch.where(norm > 2.0**-40, (grad * y).sum(-1, keepdim=True), 0.0)
    return (grad - y * along) / norm * scale


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::norm_overflow", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Divide the rows of x `[rows, cols]` by their norms, at least 2^-40."""
        rows, cols = row_shape(x)
        y = fresh(x)
        _kernel[(rows,)](x.contiguous(), y, cols, BLOCK=triton.next_power_of_2(cols), SCALED=not wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
