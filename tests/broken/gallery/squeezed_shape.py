"""`broken::squeezed_shape`: a `squeeze()` without a dimension drops every axis that happens to have size 1."""

import torch

import opcheck

from .twins import draw_x, fresh, save_shape, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::squeezed_shape", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        y = scaled(x, 3.0)
        return y.squeeze() if wrong else y

    op.register_fake(lambda x: fresh(x).squeeze() if wrong else fresh(x))
    op.register_autograd(lambda ctx, grad: 3.0 * grad.reshape(ctx.shape), setup_context=save_shape)
