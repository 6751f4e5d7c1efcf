"""Run the programs of an interpreted launch in another order: nothing right depends on it."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any, Literal

Order = Literal["launch", "reversed", "shuffled"]
ORDERS: tuple[Order, ...] = ("reversed", "shuffled")


@contextlib.contextmanager
def program_order(order: Order, *, seed: int = 0) -> Iterator[None]:
    """Permute the program ids of every interpreted launch; compiled launches are left alone.

    The interpreter sets each program id of the grid once, in x, y, z order; the id that it sets is replaced by its
    image under a permutation of the grid, so that every program still runs exactly once.
    """
    if order == "launch":
        yield
        return
    from triton.runtime.interpreter import interpreter_builder as builder

    original = builder.set_grid_idx
    known: dict[tuple[int, ...], list[int]] = {}

    def set_grid_idx(x: int, y: int, z: int) -> Any:
        grid = tuple(builder.grid_dim)
        if grid not in known:
            known[grid] = _permutation(grid, order, seed)
        flat = known[grid][(x * grid[1] + y) * grid[2] + z]
        rest, at_z = divmod(flat, grid[2])
        return original(*divmod(rest, grid[1]), at_z)

    builder.set_grid_idx = set_grid_idx
    try:
        yield
    finally:
        del builder.set_grid_idx


def _permutation(grid: tuple[int, ...], order: Order, seed: int) -> list[int]:
    flat = list(range(grid[0] * grid[1] * grid[2]))
    if order == "reversed":
        flat.reverse()
    else:
        random.Random(seed).shuffle(flat)
    return flat
