"""`broken::fake_number`: the fake turns a size into a number, so that torch.compile compiles anew for each of them."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::fake_number", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.0)

    op.register_fake((lambda x: x.new_empty(x.shape[0], int(x.shape[1]))) if wrong else fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
