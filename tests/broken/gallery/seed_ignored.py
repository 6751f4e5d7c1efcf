"""`broken::seed_ignored`: the kernel's seed comes from the operating system: `torch.manual_seed` repeats nothing."""

import os

import torch

import opcheck

from .dropping import differentiable, dropped, fresh_seed, masked, reference
from .twins import draw_x, twins


@twins
def declare(namespace, wrong):
    name = f"{namespace}::seed_ignored"

    @opcheck.register(name, reference=reference, samples=draw_x)
    def op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Drop a quarter of x `[rows, cols]` and scale the rest; return it and the mask of what is kept."""
        return dropped(x, int.from_bytes(os.urandom(5)) if wrong else fresh_seed())

    differentiable(op, name, masked)
