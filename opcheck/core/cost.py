"""What a case costs, roughly, in seconds of one core: enough to fit a plan into a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from opcheck.core.case import Dims
from opcheck.core.facts import Launch
from opcheck.core.policy import Contract, Level
from opcheck.core.shapes import named, odd
from opcheck.core.tiles import by_kernel

# On one core of an ordinary server, measured over the 15 ops of this repository: an interpreted case takes 0.05 s, and
# for each program of its forward and backward 0.002 to 0.03 s with its repeats; the costly checks run it 5 times more.
CASE, PROGRAM, REPRESENTATIVE = 0.08, 0.007, 5.0
COMPILED_CASE, COMPILED_ELEMENTS = 0.1, 2e-9  # on a GPU the programs cost nothing, golden in FP64 and the drawing do

BUDGET: Mapping[Level, float] = {"quick": 3.0, "standard": 18.0, "full": 100.0}  # seconds for each op


def case_cost(contract: Contract, launches: Iterable[Launch], backend: str) -> Callable[[Dims], float]:
    """Return a function from the shape of a case to its cost in seconds.

    The number of programs at a shape is that of the representative shape, scaled along each dimension as it was
    observed to grow.
    """
    base, names = odd(contract), named(contract)
    series = [found for found in by_kernel(launches).values() if base in found]

    def cost(dims: Dims) -> float:
        elements = math.prod(dims.values())
        if backend != "cpu":
            return COMPILED_CASE + COMPILED_ELEMENTS * elements
        leading = math.prod(dims.leading)
        programs = sum(_programs(found, base, names, dims) for found in series) * max(leading, 1)
        return CASE + PROGRAM * programs

    return cost


def _programs(found: Mapping[Dims, Launch], base: Dims, names: tuple[str, ...], dims: Dims) -> float:
    count = float(math.prod(found[base].grid))
    for name in names:
        along = sorted(
            (at[name], math.prod(launch.grid))
            for at, launch in found.items()
            if all(at[other] == base[other] for other in names if other != name)
        )
        count *= _between(along, dims.get(name, base[name])) / max(math.prod(found[base].grid), 1)
    return max(count, 1.0)


def _between(points: list[tuple[int, int]], size: int) -> float:
    """Interpolate linearly; below the first point and beyond the last one in proportion to the size.

    A count that is the same at all points does not depend on the size.
    """
    (first, low), (last, high) = points[0], points[-1]
    if low == high:
        return low
    if size <= first:
        return low * size / max(first, 1)
    if size >= last:
        return high * size / max(last, 1)
    left = max((item for item in points if item[0] <= size), key=lambda item: item[0])
    right = min((item for item in points if item[0] >= size), key=lambda item: item[0])
    if left[0] == right[0]:
        return left[1]
    return left[1] + (right[1] - left[1]) * (size - left[0]) / (right[0] - left[0])
