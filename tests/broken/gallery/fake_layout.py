"""K070: the op keeps the layout of its input, the fake says that the output is contiguous."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return 3.0 * x


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::fake_layout", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Compute `3 * x` for x `[rows, cols]`."""
        return torch.empty_like(x).copy_(scaled(x, 3.0))

    op.register_fake(fresh if wrong else torch.empty_like)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)
