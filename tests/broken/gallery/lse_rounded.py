"""`broken::lse_rounded`: the backward takes exp(x - out) of the output, which float16 has rounded."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, fresh_rows, row_shape, twins


@triton.jit
def _kernel(x_ptr, out_ptr, grad_ptr, grad_x_ptr, cols, BLOCK: tl.constexpr, AGAIN: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    grad = tl.load(grad_ptr + row).to(tl.float32)
    if AGAIN:
        exponentials = tl.exp(x - tl.max(x))
        p = exponentials / tl.sum(exponentials)
    else:
        p = tl.exp(x - tl.load(out_ptr + row).to(tl.float32))
    tl.store(grad_x_ptr + row * cols + at, grad * p, mask=at < cols)


def reference(x):
    return torch.logsumexp(x.float(), -1).to(x.dtype)


def save_both(ctx, inputs, output):
    """Keep the input and the output."""
    ctx.save_for_backward(*inputs, output)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::lse_rounded", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `log(sum(exp(x)))` `[rows]` of the rows of x `[rows, cols]`."""
        row_shape(x)
        wide = x.float()
        largest = wide.amax(-1, keepdim=True)
        return (largest[:, 0] + (wide - largest).exp().sum(-1).log()).to(x.dtype)

    @torch.library.custom_op(f"{namespace}::lse_rounded_backward", mutates_args=())
    def gradient(x: torch.Tensor, out: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        grad_x = fresh(x)
        _kernel[(rows,)](
            x.contiguous(), out, grad.contiguous(), grad_x, cols, BLOCK=triton.next_power_of_2(cols), AGAIN=not wrong
        )
        return grad_x

    gradient.register_fake(lambda x, out, grad: fresh(x))
    op.register_fake(fresh_rows)
    op.register_autograd(lambda ctx, grad: gradient(*ctx.saved_tensors, grad), setup_context=save_both)
