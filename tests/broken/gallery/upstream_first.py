"""K023: the backward never advances to its own row's upstream gradient and uses the first one."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, fresh_rows, save_inputs, twins


@triton.jit
def _grad_kernel(grad_ptr, x_ptr, out_ptr, cols, BLOCK: tl.constexpr, ADVANCE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + row * ADVANCE)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + row * cols + at, 2.0 * grad * x, mask=at < cols)


def reference(x):
    return x.square().sum(-1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::upstream_first", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the sum of squares `[rows]` of the rows of x `[rows, cols]`."""
        return x.square().sum(-1)

    @torch.library.custom_op(f"{namespace}::upstream_first_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        out = fresh(x)
        _grad_kernel[(rows,)](
            grad.contiguous(),
            x.contiguous(),
            out,
            cols,
            BLOCK=triton.next_power_of_2(max(cols, 1)),
            ADVANCE=int(not wrong),
        )
        return out

    op.register_fake(fresh_rows)
    grad_x.register_fake(lambda grad, x: fresh(x))
    op.register_autograd(lambda ctx, grad: grad_x(grad, *ctx.saved_tensors), setup_context=save_inputs)
