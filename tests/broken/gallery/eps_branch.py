"""`broken::eps_branch`: the gradient comes through the norm also where eps, a constant, has taken its place."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, row_shape, save_inputs, twins

EPS = 16.0


@triton.jit
def _kernel(x_ptr, grad_ptr, grad_x_ptr, cols, eps, BLOCK: tl.constexpr, BRANCH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    grad = tl.load(grad_ptr + row * cols + at, mask=at < cols, other=0.0)
    norm = tl.sqrt_rn(tl.sum(x * x))
    divisor = tl.maximum(norm, eps)
    y = x / divisor
    along = tl.sum(grad * y)
    if BRANCH:
        along = tl.where(norm < eps, 0.0, along)
    tl.store(grad_x_ptr + row * cols + at, (grad - y * along) / divisor, mask=at < cols)


def reference(x):
    return torch.nn.functional.normalize(x, dim=-1, eps=EPS)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::eps_branch", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Divide the rows of x `[rows, cols]` by their norms, at least 16."""
        row_shape(x)
        return (x / x.square().sum(-1, keepdim=True).sqrt().clamp(min=EPS)).contiguous()

    @torch.library.custom_op(f"{namespace}::eps_branch_backward", mutates_args=())
    def gradient(x: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        grad_x = fresh(x)
        _kernel[(rows,)](
            x.contiguous(), grad.contiguous(), grad_x, cols, EPS, BLOCK=triton.next_power_of_2(cols), BRANCH=not wrong
        )
        return grad_x

    gradient.register_fake(lambda x, grad: fresh(x))
    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: gradient(*ctx.saved_tensors, grad), setup_context=save_inputs)
