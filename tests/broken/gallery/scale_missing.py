"""`broken::scale_missing`: what is kept is not divided by 1 - p, forward and backward."""

import torch

import opcheck

from .dropping import SCALE, differentiable, dropped, fresh_seed, masked, reference
from .twins import draw_x, twins


@twins
def declare(namespace, wrong):
    name = f"{namespace}::scale_missing"
    scale = 1.0 if wrong else SCALE

    @opcheck.register(name, reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Drop a quarter of x `[rows, cols]` and scale the rest; return it and the mask of what is kept."""
        return dropped(x, fresh_seed(), scale=scale)

    differentiable(op, name, lambda grad, mask: masked(grad, mask, scale=scale))
