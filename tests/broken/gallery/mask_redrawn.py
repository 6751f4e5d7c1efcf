"""`broken::mask_redrawn`: the backward draws a mask of its own instead of dropping what the forward dropped."""

import torch

import opcheck

from .dropping import differentiable, dropped, fresh_seed, masked, reference
from .twins import draw_x, twins


@twins
def declare(namespace, wrong):
    name = f"{namespace}::mask_redrawn"

    @opcheck.register(name, reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Drop a quarter of x `[rows, cols]` and scale the rest; return it and the mask of what is kept."""
        return dropped(x, fresh_seed())

    def backward(grad, mask):
        return dropped(grad, fresh_seed())[0] if wrong else masked(grad, mask)

    differentiable(op, name, backward)
