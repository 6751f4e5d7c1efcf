"""K065: the forward is registered and no autograd formula is, so training fails."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::no_autograd", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.0)

    op.register_fake(fresh)
    if not wrong:
        op.register_autograd(lambda ctx, grad: 3.0 * grad)
