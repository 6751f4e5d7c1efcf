"""`broken::returns_view`: the output is a view of the input, though the schema says that it is new."""

import torch

import opcheck

from .twins import draw_x, save_shape, scaled, twins


def reference(x):
    return x.reshape(-1).clone()


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::returns_view", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Flatten x `[rows, cols]` into a new tensor `[rows * cols]`."""
        return x.reshape(-1) if wrong else scaled(x, 1.0).view(-1)

    op.register_fake(lambda x: x.new_empty(x.shape[0] * x.shape[1]))
    op.register_autograd(lambda ctx, grad: grad.reshape(ctx.shape).clone(), setup_context=save_shape)
