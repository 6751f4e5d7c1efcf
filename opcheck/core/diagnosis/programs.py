"""From elements to the programs that compute them, where a launch's grid leaves only one way to read it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A launch that was given the tensor.

    Attributes:
        kernel: Its name.
        grid: Programs along x, y, z.
        constants: The integers among its `tl.constexpr` arguments.
    """

    kernel: str
    grid: tuple[int, int, int]
    constants: Mapping[str, int]


def programs(launch: Launched, wrong: Tensor) -> str:
    """Name the programs whose elements are wrong, `[*S]`; empty where the grid can be read in no way or in several."""
    steps = _steps(launch, tuple(wrong.shape))
    if steps is None:
        return ""
    places = wrong.nonzero()
    found = torch.zeros((len(places), 3), dtype=torch.int64)
    flat = wrong.reshape(-1).nonzero().reshape(-1)
    for grid_axis, (axis, step) in steps.items():
        found[:, grid_axis] = (flat if axis < 0 else places[:, axis]).cpu() // step
    ids = torch.unique(found, dim=0).tolist()
    total = math.prod(launch.grid)
    if len(ids) > MOST_NAMED:
        return f"{len(ids)} of {total} programs of {launch.kernel}"
    named = ", ".join(str(item) for item in ids)
    return f"program{'s' if len(ids) > 1 else ''} {named} of {launch.kernel}, of {total}"


def tiles(launch: Launched, axes: tuple[str, ...], shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the sizes of tiles that each named axis may have in a launch: by its grid, else any of its constants."""
    steps = dict((_steps(launch, shape) or {}).values())
    loose = tuple(sorted({item for item in launch.constants.values() if _power(item)}))
    return {name: (steps[at],) if steps.get(at, 1) > 1 else loose for at, name in enumerate(axes) if steps.get(at) != 1}


def _steps(launch: Launched, shape: tuple[int, ...]) -> dict[int, tuple[int, int]] | None:
    """Return for each axis of the grid which axis of the tensor it covers, -1 for all flattened, in which steps."""
    found: dict[int, tuple[int, int]] = {}
    for grid_axis, count in enumerate(launch.grid):
        if count == 1:
            continue
        ways = [way for at, size in enumerate(shape) for way in _ways(at, size, count, launch) if size > 1]
        if not ways and count != math.prod(shape):
            ways = [*_ways(-1, math.prod(shape), count, launch)]
            ways += [(-1, shape[-1])] if len(shape) > 2 and count * shape[-1] == math.prod(shape) else []
        if len(ways) != 1 or ways[0][0] in [axis for axis, _ in found.values()]:
            return None
        found[grid_axis] = ways[0]
    return found or None


def _ways(axis: int, size: int, count: int, launch: Launched) -> list[tuple[int, int]]:
    if size == count:
        return [(axis, 1)]
    constants = {item for item in launch.constants.values() if _power(item)}
    return [(axis, item) for item in sorted(constants) if -(-size // item) == count]


def _power(value: int) -> bool:
    return value >= 2 and value & (value - 1) == 0
