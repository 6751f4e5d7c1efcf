"""`broken::returns_input`: nothing is to be done, so the input itself is returned and not a copy of it."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return x.clone()


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::returns_input", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Copy x `[rows, cols]`."""
        return x if wrong else scaled(x, 1.0)

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: grad.clone())
