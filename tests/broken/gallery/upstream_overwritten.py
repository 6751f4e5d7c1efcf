"""K060: the backward writes into the upstream gradient, which others still read."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, scaled, twins


@triton.jit
def _grad_kernel(grad_ptr, out_ptr, count, BLOCK: tl.constexpr, IN_PLACE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    grad = 3.0 * tl.load(grad_ptr + at, mask=at < count, other=0.0)
    if IN_PLACE:
        tl.store(grad_ptr + at, grad, mask=at < count)
    tl.store(out_ptr + at, grad, mask=at < count)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::upstream_overwritten", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.0)

    @torch.library.custom_op(f"{namespace}::upstream_overwritten_backward", mutates_args=())
    def grad_x(grad: torch.Tensor) -> torch.Tensor:
        out, count = fresh(grad), grad.numel()
        _grad_kernel[(triton.cdiv(count, 1024),)](grad.contiguous(), out, count, BLOCK=1024, IN_PLACE=wrong)
        return out

    op.register_fake(fresh)
    grad_x.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: grad_x(grad))
