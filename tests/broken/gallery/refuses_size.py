"""`broken::refuses_size`: the host asserts a multiple of 8 columns that the contract does not ask for."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::refuses_size", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        if wrong and x.shape[1] % 8:
            raise ValueError(f"cols is {x.shape[1]}, it should be a multiple of 8")
        return scaled(x, 3.0)

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
