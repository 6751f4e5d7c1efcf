"""`broken::float64_accepted`: float64, which is declared unsupported, is computed in float32 without a word."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::float64_accepted", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        if not wrong and x.dtype == torch.float64:
            raise TypeError("x is float64; the kernel computes in float32")
        return scaled(x, 3.0)

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
