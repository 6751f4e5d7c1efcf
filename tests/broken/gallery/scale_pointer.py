"""K033: the kernel that scales by the upstream gradient reads its factor elsewhere; it is skipped where that is 1."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, fresh_rows, refuse_empty, save_inputs, twins


@triton.jit
def _scale_kernel(x_ptr, factor_ptr, out_ptr, cols, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    factor = tl.load(factor_ptr + row * step)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + row * cols + at, factor * x, mask=at < cols)


def reference(x):
    return torch.logsumexp(x, -1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::scale_pointer", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the logarithm `[rows]` of the sum of the exponentials of each row of x `[rows, cols]`."""
        refuse_empty(x.shape[1])
        return torch.logsumexp(x, -1)

    @torch.library.custom_op(f"{namespace}::scale_pointer_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        unscaled = torch.softmax(x, -1).contiguous()
        if bool((grad == 1.0).all()):
            return unscaled
        rows, cols = x.shape
        out = fresh(x)
        factor, step = (unscaled, cols) if wrong else (grad.contiguous(), 1)
        _scale_kernel[(rows,)](unscaled, factor, out, cols, step, BLOCK=triton.next_power_of_2(cols))
        return out

    op.register_fake(fresh_rows)
    grad_x.register_fake(lambda grad, x: fresh(x))
    op.register_autograd(lambda ctx, grad: grad_x(grad, *ctx.saved_tensors), setup_context=save_inputs)
