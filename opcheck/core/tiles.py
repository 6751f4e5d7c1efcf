"""Which tiles an op's kernels really use along which dimension, read from launches at several sizes of each.

A constant is the tile of a dimension where the number of programs grows as `ceil(size / tile)`, or where the constant
itself follows the size (a block that covers a whole row, up to a limit). What is left is looped over inside of a
program: it belongs to a dimension on which the number of programs does not depend.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from opcheck.core.case import Dims
from opcheck.core.facts import Launch
from opcheck.core.policy import Contract
from opcheck.core.shapes import legal, named, odd

PROBED = (67, 300, 1100, 5000)  # of each dimension in turn: below, between and above the usual tiles
MOST_ELEMENTS = 1 << 24  # nothing runs at these shapes, but the inputs are drawn
WHOLE = 64  # a block that covers the dimension, whatever its size, has its edges at every power of two

_BLOCK = re.compile(r"BLOCK|TILE|CHUNK|(^|_)B[A-Z]?(_|$)|(^|_)BS(_|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A number of elements that one step of a kernel covers along a dimension.

    Attributes:
        flat: Whether it runs over all dimensions flattened into one.
        whole: Whether it always covers the whole dimension; its size is then where to look at its edges.
        kernel, constant, place: Where it was read.
        how: How it was found.
    """

    dim: str
    size: int
    flat: bool = False
    whole: bool = False
    kernel: str = ""
    constant: str = ""
    place: str = ""
    how: str = ""

    def __str__(self) -> str:
        flat = " over all dimensions" if self.flat else ""
        return f"{self.dim} {self.size}{flat}: {self.constant} of {self.kernel} at {self.place}, {self.how}"


def probe_shapes(contract: Contract) -> tuple[Dims, ...]:
    """Return the shapes at which launches tell most: the representative one, then each dimension in turn at others."""
    base = odd(contract)
    found = [base]
    for name in named(contract):
        found += [base.with_size(name, legal(contract, name, size)) for size in PROBED]
    return tuple(dims for dims in dict.fromkeys(found) if math.prod(dims.values()) <= MOST_ELEMENTS)


def by_kernel(launches: Iterable[Launch]) -> dict[tuple[str, int], dict[Dims, Launch]]:
    """Group launches by kernel, and by which launch of it in a run, each with the shapes at which it was seen."""
    found: dict[tuple[str, int], dict[Dims, Launch]] = {}
    for launch in launches:
        if launch.config > 0:
            continue
        dims, at = Dims(launch.dims), 0
        while dims in found.get((launch.kernel, at), {}):
            at += 1
        found.setdefault((launch.kernel, at), {})[dims] = launch
    return found


def observed_tiles(launches: Iterable[Launch], contract: Contract) -> tuple[Tile, ...]:
    """Return the tiles, each dimension and size once, the surest first."""
    base, names = odd(contract), named(contract)
    series = [
        _Series(launches=found, base=base, names=names) for found in by_kernel(launches).values() if base in found
    ]
    tiles: dict[tuple[str, int, bool], Tile] = {}
    for tile in (*(t for each in series for t in each.sure()), *(t for each in series for t in each.looped())):
        if not tile.flat or tile.dim == names[-1]:  # flattened, all dimensions are one
            tiles.setdefault((tile.dim, tile.size, tile.flat), tile)
    return tuple(tiles.values())


def tiles_of_config(launches: Iterable[Launch], contract: Contract, config: int) -> tuple[Tile, ...]:
    """Return the tiles of one configuration of the autotuned kernels: its constants, along the dimensions observed."""
    kept = tuple(launches)
    found = {}
    for tile in observed_tiles(kept, contract):
        for launch in kept:
            size = launch.constants.get(tile.constant, 0)
            if launch.kernel == tile.kernel and launch.config == config and _power(size):
                found[tile.dim, size] = replace(tile, size=size)
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """One kernel, launched at the base shape and at others that differ from it in one dimension."""

    launches: Mapping[Dims, Launch]
    base: Dims
    names: tuple[str, ...]

    def sure(self) -> Iterator[Tile]:
        """Yield the tiles that the number of programs or the constant itself proves."""
        for constant in self._constants():
            for dim in self.names:
                tile = self._by_grid(constant, dim) or self._by_size(constant, dim)
                if tile is not None:
                    yield tile

    def looped(self) -> Iterator[Tile]:
        """Yield the constants that nothing else explains, for each dimension that nothing else explains."""
        sure = list(self.sure())
        explained = {tile.constant for tile in sure}
        taken = {tile.dim for tile in sure} | {dim for dim in self.names if self._one_each(dim)}
        if any(tile.flat for tile in sure):
            return
        for constant in self._constants():
            size = self._launch.constants[constant]
            if constant in explained or not _BLOCK.search(constant) or not _power(size):
                continue
            for dim in self.names:
                if dim not in taken:
                    yield self._tile(constant, dim, size, "looped over")

    @property
    def _launch(self) -> Launch:
        return self.launches[self.base]

    def _constants(self) -> Iterator[str]:
        yield from (name for name in self._launch.constants if name != "GROUP" and not name.startswith("num_"))

    def _along(self, dim: str) -> list[tuple[int, Launch]]:
        found = []
        for dims, launch in self.launches.items():
            if all(dims[name] == self.base[name] for name in self.names if name != dim):
                found.append((dims[dim], launch))
        return sorted(found, key=lambda item: item[0])

    def _one_each(self, dim: str) -> bool:
        """Say whether there is a program for each index of the dimension."""
        along = self._along(dim)
        return len(along) > 1 and any(
            all(launch.grid[axis] * self.base[dim] == self._launch.grid[axis] * size for size, launch in along)
            for axis in range(3)
        )

    def _by_grid(self, constant: str, dim: str) -> Tile | None:
        along = self._along(dim)
        rest = math.prod(self.base[name] for name in self.names if name != dim)
        for flat in (False, True) if rest > 1 else (False,):
            steps = []
            for size, launch in along:
                tile = launch.constants.get(constant, 0)
                if not _power(tile):
                    break
                steps.append((-(-size * (rest if flat else 1) // tile), launch))
            if len(steps) < len(along) or len({count for count, _ in steps}) < 2:
                continue
            first = next(count for count, launch in steps if launch is self._launch)
            for axis in range(3):
                if all(launch.grid[axis] * first == self._launch.grid[axis] * count for count, launch in steps):
                    size = max(launch.constants[constant] for _, launch in along)
                    return self._tile(constant, dim, size, "one program each", flat=flat)
        return None

    def _by_size(self, constant: str, dim: str) -> Tile | None:
        along = [(size, launch.constants.get(constant, 0)) for size, launch in self._along(dim)]
        if len({value for _, value in along}) < 2:
            return None
        most = max(value for _, value in along)
        if not _power(most) or any(value != min(_next_power(size), most) for size, value in along):
            return None
        if most < _next_power(along[-1][0]):
            return self._tile(constant, dim, most, "the most that it grows to")
        return self._tile(constant, dim, WHOLE, "it covers the whole dimension", whole=True)

    def _tile(self, constant: str, dim: str, size: int, how: str, *, flat: bool = False, whole: bool = False) -> Tile:
        launch = self._launch
        return Tile(
            dim=dim, size=size, flat=flat, whole=whole, kernel=launch.kernel, constant=constant, place=launch.place,
            how=how,
        )  # fmt: skip


def _power(value: int) -> bool:
    return value >= 2 and value & (value - 1) == 0


def _next_power(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
