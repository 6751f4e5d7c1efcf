"""Shapes of which the interpreter runs a sample of the programs: which shapes, which programs, what they cost."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable

from opcheck.core.case import Dims
from opcheck.core.facts import Facts
from opcheck.core.policy import Contract, Level
from opcheck.core.shapes import INTERPRETED_ELEMENTS
from opcheck.core.variants import PROGRAMS, variant_text

CHOSEN = 16  # programs of each launch: the first, the last, the other corners of the grid, and random ones
CHECKS = ("structure", "numerics", "memory")  # what judges such a case
#: The most elements that a shape may have: golden in FP64 takes 8 bytes for each, and a worker several times that.
MOST_ELEMENTS: dict[Level, int] = {"quick": 0, "standard": 1 << 22, "full": 1 << 26}
MOST_SHAPES: dict[Level, int] = {"quick": 0, "standard": 1, "full": 3}
WHOLE_KINDS = ("contraction", "attention")  # golden, and a program that loops over a dimension, take too long
CASE, ELEMENT = 0.6, 5e-7  # seconds, measured: drawing the inputs, golden and reference are the most of it

Program = tuple[int, int, int]


def sampled_shapes(contract: Contract, facts: Facts, level: Level, shapes: Iterable[Dims], backend: str) -> list[Dims]:
    """Return, smallest first, those of the shapes that are too large for the interpreter and not for a sample.

    None of an op that draws random numbers: its values are not golden's, and a sample of them says nothing.
    """
    if backend != "cpu" or contract.random or contract.kind in WHOLE_KINDS or not facts.launches:
        return []
    sizes = {dims: math.prod(dims.values()) for dims in shapes}
    fitting = (dims for dims, size in sizes.items() if INTERPRETED_ELEMENTS < size <= MOST_ELEMENTS[level])
    return sorted(fitting, key=lambda dims: sizes[dims])[: MOST_SHAPES[level]]


def sampled_variant() -> str:
    """Return the variant of a case of which a sample of the programs runs."""
    return variant_text({PROGRAMS: CHOSEN})


def sampled_cost(dims: Dims) -> float:
    """Return what such a case takes, in seconds of one core; its programs take next to nothing."""
    return CASE + ELEMENT * math.prod(dims.values())


def chosen_programs(grid: Program, count: int, seed: int) -> list[Program]:
    """Return at most `count` programs of a grid, in its order: its corners, the first and the last before others.

    Equal grids of one case get equal programs, so that a backward finds what its forward has saved.
    """
    total = math.prod(grid)
    if total <= count:
        return list(itertools.product(range(grid[0]), range(grid[1]), range(grid[2])))
    ends = [(0, size - 1) for size in grid]
    corners = dict.fromkeys(itertools.product(ends[0], ends[1], ends[2]))
    first = sorted(corners, key=lambda program: len({program[axis] == 0 for axis in range(3) if grid[axis] > 1}))
    found: dict[Program, None] = dict.fromkeys(first[:count])
    for turn in itertools.count():
        if len(found) >= count:
            break
        drawn = hashlib.blake2b(f"{seed}|{grid}|{turn}".encode(), digest_size=8).digest()
        rest, z = divmod(int.from_bytes(drawn) % total, grid[2])
        found[rest // grid[1], rest % grid[1], z] = None
    return sorted(found)
