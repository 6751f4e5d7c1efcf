"""`broken::no_fake`: no fake is registered, so the op cannot be traced."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::no_fake", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.0)

    if not wrong:
        op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
