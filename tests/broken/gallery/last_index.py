"""`broken::last_index`: the last row of a table is taken to be out of bounds, and comes back as zeros."""

import torch

import opcheck

from .first_index import allocate, backward, look_up, reference, samples, setup_context
from .twins import twins


@twins
def declare(namespace, wrong):
    @opcheck.register(f"{namespace}::last_index", reference=reference, samples=samples)
    def op(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Look up rows of table `[entries, cols]` by index `[rows]`, giving `[rows, cols]`."""
        entries = table.shape[0]
        return look_up(table, index, 0, entries - 1 if wrong else entries)

    op.register_fake(allocate)
    op.register_autograd(backward, setup_context=setup_context)
