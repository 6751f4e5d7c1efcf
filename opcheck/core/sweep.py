"""The shapes at which an op is tried: by its contract, and around the tiles of its kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from opcheck.core.case import LEADING, Dims
from opcheck.core.policy import Contract, Level
from opcheck.core.shapes import INTERPRETED_ELEMENTS, MANY_ROWS, legal, named, odd, reduced
from opcheck.core.tiles import Tile

BEYOND_GRID = 65_537  # a grid's y and z axes end at 65,535, and 16-bit counters with them
PRIMES = (13, 509)  # of a dimension that is not reduced, and of one that is
RANKS = ((2,), (2, 1), (2, 1, 3))  # leading dimensions, up to five in all with two that have names
ROOM = 1 << 14  # elements; with more the other dimensions are smaller, and in the end as small as they may be
MOST_TILES = {"quick": 1, "standard": 2, "full": 6}  # observed tiles of a dimension that are tried


def shapes_of(contract: Contract, level: Level, tiles: Iterable[Tile] = ()) -> Iterator[Dims]:
    """Yield the shapes of a level; the same one may come twice.

    Quick: the smallest, and one element beyond each tile. Standard: both sides of each tile and several tiles, 1 in
    each dimension in turn, odd sizes, just above powers of two, many rows, several ranks, more rows than a grid's axis
    holds, production. Full: primes, and small sizes of each dimension.

    Args:
        tiles: The tiles that were observed; those of the contract are added to them.
    """
    names, along = named(contract), reduced(contract)
    base = _sized(contract, 3, 37)
    smallest = _sized(contract, 1, 1)
    found = _tiles(contract, level, tuple(tiles))
    yield smallest
    yield from (_around(contract, tile, tile.size + 1) for tile in found)
    if level == "quick":
        return
    for tile in found:
        yield from (_around(contract, tile, size) for size in (tile.size - 1, tile.size, 2 * tile.size + 1))
    if (several := several_tiles(contract, found)) is not None:
        yield several
    yield base
    yield from (base.with_size(name, legal(contract, name, 1)) for name in names)
    yield _sized(contract, 17, 257)
    if rows := [name for name in names if name not in along]:
        many = {**dict.fromkeys(rows, 2), rows[0]: MANY_ROWS}
        yield Dims({**odd(contract), **{name: legal(contract, name, size) for name, size in many.items()}})
        yield smallest.with_size(rows[0], legal(contract, rows[0], BEYOND_GRID))
    if LEADING in contract.dims:
        yield from (Dims({**{f"{LEADING}{at}": size for at, size in enumerate(rank)}, **base}) for rank in RANKS)
    for shape in contract.production:
        yield Dims({**base, **shape})
    if level == "full":
        yield _sized(contract, *PRIMES)
        yield from (base.with_size(n, legal(contract, n, size)) for n in names for size in (2, 4, 7, 8, 9, 31, 32, 33))


def several_tiles(contract: Contract, tiles: Iterable[Tile]) -> Dims | None:
    """Return a shape with more than two tiles along every dimension at once, None where no tile is known.

    A block that covers a whole dimension is no tile of it: there are never several.
    """
    largest: dict[str, int] = {}
    for tile in tiles:
        if not (tile.flat or tile.whole):
            largest[tile.dim] = max(tile.size, largest.get(tile.dim, 0))
    if not largest:
        return None
    for other, times in ((3, 2), (3, 1), (1, 2), (1, 1)):
        sizes = {name: legal(contract, name, times * size + 1) for name, size in largest.items()}
        dims = Dims({**_sized(contract, other, 37), **sizes})
        if math.prod(dims.values()) <= INTERPRETED_ELEMENTS:
            return dims
    return None


def _tiles(contract: Contract, level: Level, observed: tuple[Tile, ...]) -> tuple[Tile, ...]:
    """Return the declared tiles, then of each dimension the surest observed ones that are not declared."""
    found = [Tile(dim=name, size=size) for name in named(contract) for size in contract.tiles.get(name, ())]
    known = {(tile.dim, tile.size, tile.flat) for tile in found}
    room = {(name, flat): MOST_TILES[level] for name in named(contract) for flat in (False, True)}
    for tile in observed:
        if (tile.dim, tile.size, tile.flat) not in known and room[tile.dim, tile.flat]:
            room[tile.dim, tile.flat] -= 1
            found.append(tile)
    return tuple(found)


def _around(contract: Contract, tile: Tile, size: int) -> Dims:
    smallest = _sized(contract, 1, 1)
    wanted = legal(contract, tile.dim, size)
    # What is reduced goes last: over a single element there is little to get wrong.
    for base in () if tile.flat else (_sized(contract, other, 37) for other in (3, 2, 1)):
        dims = base.with_size(tile.dim, wanted)
        if math.prod(dims.values()) <= ROOM:
            return dims
    return smallest.with_size(tile.dim, wanted)


def _sized(contract: Contract, other: int, along: int) -> Dims:
    reduces = reduced(contract)
    return Dims({n: legal(contract, n, along if n in reduces else other) for n in named(contract)})
