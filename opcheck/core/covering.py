"""Pairs of options: which a set of cases covers, and which further cases cover most of the others.

The full product of dtypes, shapes, values, layouts, variants and gradients is never run. Most faults that need a
combination need two options at once (Kuhn, Wallace, Gallo, IEEE TSE 30(6), 2004), so cases are added until every
possible pair of options has stood in one, or the budget is spent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from opcheck.core.case import Dims
from opcheck.core.factors import Point
from opcheck.core.report import Share

FACTORS: Mapping[str, str] = {
    "dtype": "dtype", "shape": "dims", "values": "values", "layout": "layout", "variant": "variant", "grads": "grads",
}  # fmt: skip
# The pairs of factors in which most faults hide come first when the budget is short.
FIRST = (("dtype", "values"), ("dtype", "shape"), ("shape", "layout"), ("dtype", "layout"), ("shape", "values"))

Pair = tuple[int, int, int, int]  # factor, option, later factor, option: all by position
Row = tuple[int, ...]  # the position of each factor's option
_NAMES, _FIELDS = tuple(FACTORS), tuple(FACTORS.values())
_VALUES, _SHAPE = _NAMES.index("values"), _NAMES.index("shape")


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All that cases may combine.

    Attributes:
        options: The options of each factor of `FACTORS`, the default first.
        hiding: Options of the values under which faults of other factors do not show: a case with one of them covers
            its own pairs only.
        possible: Says whether a combination makes sense.
        pairs: Every pair that is possible.
    """

    options: tuple[tuple[Hashable, ...], ...]
    hiding: frozenset[int]
    possible: Callable[[Point], bool]
    pairs: frozenset[Pair]

    def point(self, row: Row) -> Point:
        """Return the combination that a row stands for."""
        chosen: dict[str, Any] = {name: self.options[at][row[at]] for at, name in enumerate(_FIELDS)}
        return Point(**chosen)

    def row(self, point: Point) -> Row:
        """Return the positions of a point's options, -1 for what is none."""
        found = []
        for at, name in enumerate(_FIELDS):
            option = getattr(point, name)
            found.append(self.options[at].index(option) if option in self.options[at] else -1)
        return tuple(found)

    def covered(self, points: Iterable[Point]) -> frozenset[Pair]:
        """Return the possible pairs that a set of cases covers."""
        return frozenset(pair for point in points for pair in self.pairs_of(self.row(point))) & self.pairs

    def pairs_of(self, row: Row) -> Iterator[Pair]:
        """Yield the pairs that a row covers."""
        hides = row[_VALUES] in self.hiding
        for left, right in combinations(range(len(row)), 2):
            if row[left] >= 0 and row[right] >= 0 and not (hides and _VALUES not in (left, right)):
                yield left, row[left], right, row[right]


def space(
    options: Mapping[str, Iterable[Hashable]], possible: Callable[[Point], bool], *, hiding: Collection[str] = ()
) -> Space:
    """Return the space of points; a pair is possible where it is with the defaults of the other factors."""
    listed = tuple(tuple(dict.fromkeys(options[name])) for name in _NAMES)
    hidden = frozenset(at for at, name in enumerate(listed[_VALUES]) if name in hiding)
    whole = Space(options=listed, hiding=hidden, possible=possible, pairs=frozenset())
    default = (0,) * len(_NAMES)
    pairs = frozenset(
        (left, a, right, b)
        for left, right in combinations(range(len(_NAMES)), 2)
        for a in range(len(listed[left]))
        for b in range(len(listed[right]))
        if possible(whole.point(_with(_with(default, left, a), right, b)))
    )
    return replace(whole, pairs=pairs)


def cover(
    space: Space, points: Iterable[Point], cost: Callable[[Dims], float], *, budget: float, seed: str
) -> tuple[Point, ...]:
    """Return points that cover what `points` leave open, the most useful first, until the budget is spent.

    Greedy: each starts from an open pair, in an order that the seed shuffles within `FIRST`, and takes for every other
    factor the option that covers the most open pairs, the cheapest of equals.
    """
    prices = [cost(dims) for dims in space.options[_SHAPE] if isinstance(dims, Dims)]
    still_open = set(space.pairs - space.covered(points))
    ranks = {(_NAMES.index(left), _NAMES.index(right)): at for at, (left, right) in enumerate(FIRST)}

    def turn(pair: Pair) -> tuple[int, bytes]:
        shuffled = hashlib.blake2b(f"{seed}|{pair}".encode(), digest_size=8).digest()
        return ranks.get((pair[0], pair[2]), len(FIRST)), shuffled

    queue = sorted(still_open, key=turn)
    found: dict[Point, None] = {}
    for pair in queue:
        if pair not in still_open:
            continue
        row = _completed(space, pair, still_open, prices)
        price = prices[row[_SHAPE]]
        still_open.discard(pair)
        if price > budget:
            continue
        budget -= price
        found[space.point(row)] = None
        still_open.difference_update(space.pairs_of(row))
    return tuple(found)


def shares(space: Space, points: Iterable[Point]) -> dict[str, Share]:
    """Return how many pairs a set of cases covers, for each two factors of which one has more than its default."""
    covered = space.covered(points)
    found = {}
    for left, right in combinations(range(len(_NAMES)), 2):
        if len(space.options[left]) > 1 or len(space.options[right]) > 1:
            possible = [pair for pair in space.pairs if (pair[0], pair[2]) == (left, right)]
            share = Share(covered=sum(pair in covered for pair in possible), possible=len(possible))
            found[f"{_NAMES[left]} x {_NAMES[right]}"] = share
    return found


def _completed(space: Space, pair: Pair, still_open: set[Pair], prices: list[float]) -> Row:
    left, a, right, b = pair
    row = _with(_with((0,) * len(_NAMES), left, a), right, b)
    chosen = [left, right]
    for factor in range(len(_NAMES)):
        if factor in chosen:
            continue
        ranked = []
        for option in range(len(space.options[factor])):
            if factor == _VALUES and option in space.hiding:
                continue
            gain = sum(_pair(factor, option, other, row[other]) in still_open for other in chosen)
            if gain:
                ranked.append((-gain, prices[option] if factor == _SHAPE else 0.0, option))
        for _, _, option in sorted(ranked):
            if space.possible(space.point(_with(row, factor, option))):
                row = _with(row, factor, option)
                break
        chosen.append(factor)
    return row


def _pair(factor: int, option: int, other: int, beside: int) -> Pair:
    return (factor, option, other, beside) if factor < other else (other, beside, factor, option)


def _with(row: Row, factor: int, option: int) -> Row:
    return (*row[:factor], option, *row[factor + 1 :])
