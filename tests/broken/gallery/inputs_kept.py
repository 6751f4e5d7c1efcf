"""`broken::inputs_kept`: every input is kept in a list, for a reason that is long forgotten."""

import torch

import opcheck

from .twins import draw_x, fresh, scaled, twins


def reference(x):
    return (2.0 * x.float()).to(x.dtype)


@twins
def declare(namespace, wrong):
    kept: list[torch.Tensor] = []

    @opcheck.register(f"{namespace}::inputs_kept", reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> torch.Tensor:
        """Double x `[rows, cols]`."""
        kept.append(x)
        if not wrong:
            del kept[:-1]
        return scaled(x, 2.0)

    op.register_fake(lambda x: fresh(x))
    op.register_autograd(lambda ctx, grad: (2.0 * grad.float()).to(grad.dtype))
