"""K062: the backward writes the gradient over the logits that it saved, which a second loss still differentiates."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, fresh_rows, refuse_empty, save_inputs, twins


@triton.jit
def _grad_kernel(grad_ptr, x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
    exponentials = tl.exp(x - tl.max(x))
    grad = tl.load(grad_ptr + row)
    tl.store(out_ptr + row * cols + at, grad * exponentials / tl.sum(exponentials), mask=at < cols)


def reference(x):
    return torch.logsumexp(x, -1)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::logits_overwritten", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the logarithm `[rows]` of the sum of the exponentials of each row of x `[rows, cols]`."""
        refuse_empty(x.shape[1])
        return torch.logsumexp(x, -1)

    @torch.library.custom_op(f"{namespace}::logits_overwritten_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        logits = x.contiguous()
        out = logits if wrong else fresh(x)
        _grad_kernel[(rows,)](grad.contiguous(), logits, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out.clone() if wrong else out

    op.register_fake(fresh_rows)
    grad_x.register_fake(lambda grad, x: fresh(x))
    op.register_autograd(lambda ctx, grad: grad_x(grad, *ctx.saved_tensors), setup_context=save_inputs)
