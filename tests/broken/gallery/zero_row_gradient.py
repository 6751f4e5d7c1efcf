"""`broken::zero_row_gradient`: the gradient of a norm divides by it, and at a row of zeros 0 / 0 is NaN."""

import torch
import triton
import triton.language as tl

import opcheck

from .eps_inside import EPS, reference
from .twins import draw_x, fresh, row_shape, save_inputs, twins


@triton.jit
def _kernel(x_ptr, grad_ptr, grad_x_ptr, cols, eps, BLOCK: tl.constexpr, SAFE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    grad = tl.load(grad_ptr + row * cols + at, mask=at < cols, other=0.0)
    norm = tl.sqrt_rn(tl.sum(x * x))
    divisor = tl.maximum(norm, eps)
    along = tl.sum(grad * (x / divisor))
    away = tl.where(norm < eps, 0.0, x / divisor) if SAFE else x / norm
    tl.store(grad_x_ptr + row * cols + at, (grad - away * along) / divisor, mask=at < cols)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::zero_row_gradient", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Divide the rows of x `[rows, cols]` by their norms, at least 1e-12."""
        row_shape(x)
        return (x / x.square().sum(-1, keepdim=True).sqrt().clamp(min=EPS)).contiguous()

    @torch.library.custom_op(f"{namespace}::zero_row_gradient_backward", mutates_args=())
    def gradient(x: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        grad_x = fresh(x)
        _kernel[(rows,)](
            x.contiguous(), grad.contiguous(), grad_x, cols, EPS, BLOCK=triton.next_power_of_2(cols), SAFE=not wrong
        )
        return grad_x

    gradient.register_fake(lambda x, grad: fresh(x))
    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: gradient(*ctx.saved_tensors, grad), setup_context=save_inputs)
