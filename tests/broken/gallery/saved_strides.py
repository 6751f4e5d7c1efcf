"""`broken::saved_strides`: the backward gives what it saved the strides of the forward, and a copy has others."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return (x.float() * x.float()).to(x.dtype)


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::saved_strides", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Square x `[rows, cols]`."""
        return scaled(x * x, 1.0)

    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.strides = x.stride()

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x = x.as_strided(x.shape, ctx.strides, x.storage_offset()) if wrong else x
        return (2.0 * x.float() * grad.float()).to(grad.dtype)

    op.register_fake(lambda x: fresh(x))
    op.register_autograd(backward, setup_context=setup_context)
