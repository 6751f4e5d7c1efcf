"""`broken::scale_error`: a constant is off by 1 %, which tolerances made by hand let through."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::scale_error", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return scaled(x, 3.03 if wrong else 3.0)

    op.register_fake(fresh)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
