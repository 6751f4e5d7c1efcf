"""K035, K036, K039: the backward reads the upstream gradient's rows as if each were contiguous."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, scaled, twins


@triton.jit
def _grad_kernel(grad_ptr, out_ptr, row_stride, col_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + row * row_stride + at * col_stride, mask=at < cols, other=0.0)
    tl.store(out_ptr + row * cols + at, 3.0 * grad, mask=at < cols)


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::upstream_strides", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.0)

    @torch.library.custom_op(f"{namespace}::upstream_strides_backward", mutates_args=())
    def grad_x(grad: torch.Tensor) -> torch.Tensor:
        rows, cols = grad.shape
        out = fresh(grad)
        row, col = grad.stride()
        if wrong and row >= cols:  # an expanded gradient has one element: reading on would read what is not ours
            col = 1
        elif wrong:
            row, col = 0, 0
        if out.numel():
            _grad_kernel[(rows,)](grad, out, row, col, cols, BLOCK=triton.next_power_of_2(cols))
        return out

    op.register_fake(fresh)
    grad_x.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: grad_x(grad))
