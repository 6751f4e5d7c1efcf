"""K024: the upstream gradient of a mean, one number, is read as a tensor of x's size."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, fresh, save_inputs, twins


@triton.jit
def _grad_kernel(grad_ptr, x_ptr, out_ptr, scale, count, BLOCK: tl.constexpr, FULL: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # Only element 0 of it exists: what the broken kernel reads behind is taken as 0, so that it fails alike each time.
    grad = tl.load(grad_ptr + at, mask=at < 1, other=0.0) if FULL else tl.load(grad_ptr)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(out_ptr + at, 2.0 * grad * x * scale, mask=at < count)


def reference(x):
    return x.square().mean()


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::scalar_upstream", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute the mean `[]` of the squares of x `[rows, cols]`."""
        if not x.numel():
            raise ValueError("nothing has no mean")
        return x.square().mean()

    @torch.library.custom_op(f"{namespace}::scalar_upstream_backward", mutates_args=())
    def grad_x(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        out, count = fresh(x), x.numel()
        grid = (triton.cdiv(count, 1024),)
        _grad_kernel[grid](grad, x.contiguous(), out, 1.0 / count, count, BLOCK=1024, FULL=wrong)
        return out

    op.register_fake(lambda x: x.new_empty(()))
    grad_x.register_fake(lambda grad, x: fresh(x))
    op.register_autograd(lambda ctx, grad: grad_x(grad, *ctx.saved_tensors), setup_context=save_inputs)
