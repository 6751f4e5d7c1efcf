"""`broken::seed_fixed`: the seed is a number in the code: every call and every seed of torch drop the same elements."""

import torch

import opcheck

from .dropping import differentiable, dropped, fresh_seed, masked, reference
from .twins import draw_x, twins


@twins
def declare(namespace, wrong):
    name = f"{namespace}::seed_fixed"

    @opcheck.register(name, reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Drop a quarter of x `[rows, cols]` and scale the rest; return it and the mask of what is kept."""
        return dropped(x, 2024 if wrong else fresh_seed())

    differentiable(op, name, masked)
