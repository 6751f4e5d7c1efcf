"""K038: an upstream gradient of many elements is taken to have a stride, though `.sum()` sends one that is expanded."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, fresh_rows, refuse_empty, save_inputs, twins


@triton.jit
def _grad_kernel(grad_ptr, x_ptr, out_ptr, step, held, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    # What lies behind the memory of grad is taken as 0, so that the broken twin fails alike each time.
    grad = tl.load(grad_ptr + row * step, mask=row * step < held, other=0.0)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + row * cols + at, 2.0 * grad * x, mask=at < cols)


def reference(x):
    return x.square().sum(-1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::expanded_upstream", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the sum of squares `[rows]` of the rows of x `[rows, cols]`."""
        refuse_empty(x.shape[1])
        return x.square().sum(-1)

    @torch.library.custom_op(f"{namespace}::expanded_upstream_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        out = fresh(x)
        step = int(grad.numel() > 1) if wrong else grad.stride(0)
        held = grad.untyped_storage().nbytes() // grad.element_size() - grad.storage_offset()
        _grad_kernel[(rows,)](
            grad, x.contiguous(), out, step, held, cols, BLOCK=triton.next_power_of_2(cols)
        )  # fmt: skip
        return out

    op.register_fake(fresh_rows)
    grad_x.register_fake(lambda grad, x: fresh(x))
    op.register_autograd(lambda ctx, grad: grad_x(grad, *ctx.saved_tensors), setup_context=save_inputs)
