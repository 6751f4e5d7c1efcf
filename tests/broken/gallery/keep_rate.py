"""`broken::keep_rate`: the comparison with p is the wrong way round: p of the elements are kept instead of 1 - p."""

import torch

import opcheck

from .dropping import differentiable, dropped, fresh_seed, masked, reference
from .twins import draw_x, twins


@twins
def declare(namespace, wrong):
    name = f"{namespace}::keep_rate"

    @opcheck.register(name, reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Drop a quarter of x `[rows, cols]` and scale the rest; return it and the mask of what is kept."""
        return dropped(x, fresh_seed(), keeps_below=wrong)

    differentiable(op, name, masked)
