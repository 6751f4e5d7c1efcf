"""K029: a tile's statistic of each row is broadcast along its columns, which only a square tile allows."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, refuse_empty, save_inputs, twins

TILE = 16


@triton.jit
def _grad_kernel(grad_ptr, x_ptr, out_ptr, rows, cols, TILE: tl.constexpr, BY_ROW: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    col = tl.arange(0, TILE)
    at = row[:, None] * cols + col[None, :]
    mask = (row < rows)[:, None] & (col < cols)[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    grad = tl.load(grad_ptr + at, mask=mask, other=0.0)
    scale = 1.0 / tl.sqrt_rn(tl.sum(x * x, axis=1) / cols + 1e-3)
    shared = tl.sum(grad * x, axis=1) / cols * scale * scale * scale
    shared = shared[:, None] if BY_ROW else shared[None, :]
    tl.store(out_ptr + at, grad * scale[:, None] - x * shared, mask=mask)


def reference(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-3)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::statistic_axis", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Divide each row of x `[rows, cols]`, cols at most 16, by its root mean square."""
        refuse_empty(x.shape[1])
        wide = x.float()
        return (wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + 1e-3)).to(x.dtype).contiguous()

    @torch.library.custom_op(f"{namespace}::statistic_axis_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        out = fresh(x)
        _grad_kernel[(triton.cdiv(rows, TILE),)](
            grad.contiguous(), x.contiguous(), out, rows, cols, TILE=TILE, BY_ROW=not wrong
        )
        return out

    op.register_fake(fresh)
    grad_x.register_fake(lambda grad, x: fresh(x))
    op.register_autograd(lambda ctx, grad: grad_x(grad, *ctx.saved_tensors), setup_context=save_inputs)
