"""`broken::offset_stuck`: the seed of the generator is read, not how far it is: the next call drops the same."""

import torch

import opcheck

from .dropping import differentiable, dropped, fresh_seed, masked, reference
from .twins import draw_x, twins


@twins
def declare(namespace, wrong):
    name = f"{namespace}::offset_stuck"

    @opcheck.register(name, reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Drop a quarter of x `[rows, cols]` and scale the rest; return it and the mask of what is kept."""
        return dropped(x, torch.initial_seed() % 2**40 if wrong else fresh_seed())

    differentiable(op, name, masked)
