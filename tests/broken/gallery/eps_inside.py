"""`broken::eps_inside`: eps is added to the sum of squares, where it is a million times as large as under the root."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, row_shape, save_inputs, twins

EPS = 1e-12


@triton.jit
def _kernel(x_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr, INSIDE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    squares = tl.sum(x * x)
    norm = tl.sqrt_rn(squares + eps) if INSIDE else tl.maximum(tl.sqrt_rn(squares), eps)
    tl.store(y_ptr + row * cols + at, x / norm, mask=at < cols)


def reference(x):
    return torch.nn.functional.normalize(x, dim=-1, eps=EPS)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    y = x / norm.clamp(min=EPS)
    along = torch.where(norm < EPS, 0.0, (grad * y).sum(-1, keepdim=True))
    return (grad - y * along) / norm.clamp(min=EPS)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::eps_inside", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Divide the rows of x `[rows, cols]` by their norms, at least 1e-12."""
        rows, cols = row_shape(x)
        y = fresh(x)
        _kernel[(rows,)](x.contiguous(), y, cols, EPS, BLOCK=triton.next_power_of_2(cols), INSIDE=wrong)
        return y

    op.register_fake(fresh)
    op.register_autograd(backward, setup_context=save_inputs)
