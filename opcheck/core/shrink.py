"""From a failing case to the smallest and plainest one that fails alike: greedy, pure, the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from opcheck.core.case import LEADING, Case, Dims
from opcheck.core.finding import Finding
from opcheck.core.layouts import layout_text
from opcheck.core.policy import Contract
from opcheck.core.variants import CONFIG, changed_variant, config_of, variant_values
from opcheck.core.verdict import Verdict

#: Families of values from the plainest on; whatever else a case has comes behind them.
PLAINEST = ("zeros", "small_integers", "normal")
#: Checks that compare values: two of their failures on one tensor are the same, whatever they measure.
_OF_VALUES = frozenset({"numerics", "slices", "ulp", "bias"})
_NUMBER = re.compile(r"(?<![:\w])[-+]?\d[\w.+-]*")

Fails = Callable[[Case], bool]
Judge = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """The smallest case found.

    Attributes:
        tried: How many cases were run for it.
        whole: Whether every step was tried, and none was left out for want of time.
    """

    case: Case
    tried: int
    whole: bool


class _OutOfTime(Exception):
    """There is no time for another case."""


def shrink(
    case: Case, contract: Contract, dtypes: Sequence[str], fails: Fails, *, late: Judge = lambda: False
) -> Shrunk:
    """Return the smallest case that still fails.

    Sizes come first, for they make every later step cheap; then what the case adds to the ordinary (variant, layouts,
    gradients), its values and its element type, and the sizes once more where that made smaller ones possible. A step
    is kept where the case still fails.

    Args:
        dtypes: Element types that can be judged here, in the order of the contract.
        fails: Says whether a case fails in the same way.
        late: Says that no more case is to be run; what was found until then counts.
    """
    search = _Search(case, fails, late)
    whole = True
    try:
        before = None
        while before != search.case:
            before = search.case
            _shrink_dims(search, contract)
            for steps in (_plainer_calls, _plainer_values):
                while any(search.take(candidate) for candidate in steps(search.case)):
                    pass
            any(search.take(candidate) for candidate in _earlier_dtypes(search.case, dtypes))
    except _OutOfTime:
        whole = False
    return Shrunk(case=search.case, tried=len(search.known) - 1, whole=whole)


def elements(case: Case) -> int:
    """Return the product of a case's sizes."""
    product = 1
    for size in case.dims.values():
        product *= size
    return product


def same_failure(one: Finding, other: Finding) -> bool:
    """Say whether two findings of different cases tell of one bug: the same check, tensor and kind of failure.

    A crash that shrinks to the author's own ValueError for a size that is too small would be another.
    """
    alike = (one.check, one.tensor, one.verdict) == (other.check, other.tensor, other.verdict)
    return alike and one.verdict is Verdict.FAIL and (one.check in _OF_VALUES or _kind(one) == _kind(other))


def _kind(finding: Finding) -> str:
    if " raised " in finding.detail:
        return _NUMBER.sub("#", finding.detail)
    hint = finding.looks_like if finding.check == "memory" else ""
    return hint + re.split(r"\d", finding.detail, maxsplit=1)[0]


class _Search:
    """The smallest failing case so far, and what was answered for each that was tried."""

    def __init__(self, case: Case, fails: Fails, late: Judge) -> None:
        self.case = case
        self.known = {case.id: True}
        self._fails, self._late = fails, late

    def take(self, candidate: Case) -> bool:
        """Make a candidate the smallest case where it fails."""
        if candidate.id not in self.known:
            if self._late():
                raise _OutOfTime
            self.known[candidate.id] = self._fails(candidate)
        failing = self.known[candidate.id]
        if failing:
            self.case = candidate
        return failing


def _shrink_dims(search: _Search, contract: Contract) -> None:
    dims = search.case.dims
    smallest = {name: (*smaller_sizes(contract, name, size), size)[0] for name, size in dims.items()}
    if smallest != dims and search.take(replace(search.case, dims=Dims(smallest))):
        return
    while any(search.take(replace(search.case, dims=fewer)) for fewer in _fewer_leading(search.case.dims)):
        pass
    for name in sorted(search.case.dims, key=lambda name: -search.case.dims[name]):
        _shrink_dim(search, name, smaller_sizes(contract, name, search.case.dims[name]))


def _shrink_dim(search: _Search, name: str, sizes: Sequence[int]) -> None:
    """Bisect a dimension's smaller sizes for the smallest at which the case fails, the very smallest first."""

    def take(at: int) -> bool:
        return search.take(replace(search.case, dims=search.case.dims.with_size(name, sizes[at])))

    if not sizes or take(0):
        return
    passing, failing = 0, len(sizes)
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if take(middle):
            failing = middle
        else:
            passing = middle


def smaller_sizes(contract: Contract, name: str, size: int) -> Sequence[int]:
    """Return the legal sizes of a dimension below `size`, ascending; none is 0, which is a case of its own."""
    if name in contract.sizes:
        return sorted(legal for legal in contract.sizes[name] if legal < size)
    step = contract.multiple.get(name, 1)
    least = max(contract.smallest.get(name, 1), 1)
    return range(-(-least // step) * step, size, step)


def _fewer_leading(dims: Dims) -> Iterator[Dims]:
    """Yield the sizes without one of the leading dimensions, the others numbered anew."""
    leading = dims.leading
    named = {name: size for name, size in dims.items() if not name.startswith(LEADING)}
    for left_out in range(len(leading)):
        kept = (*leading[:left_out], *leading[left_out + 1 :])
        yield Dims({**{f"{LEADING}{at}": size for at, size in enumerate(kept)}, **named})


def _plainer_calls(case: Case) -> Iterator[Case]:
    """Yield the case without all that it adds to an ordinary call, then without one thing of it at a time."""
    plain = replace(case, variant="", layout="", grads="")
    if plain != case:
        yield plain
    names = [*variant_values(case.variant), *([CONFIG] if config_of(case.variant) is not None else [])]
    for name in names:
        yield replace(case, variant=changed_variant(case.variant, without={name}))
    for name in case.layouts:
        yield replace(case, layout=layout_text({key: value for key, value in case.layouts.items() if key != name}))
    if case.grads:
        yield replace(case, grads="")


def _plainer_values(case: Case) -> Iterator[Case]:
    at = PLAINEST.index(case.values) if case.values in PLAINEST else len(PLAINEST)
    yield from (replace(case, values=values) for values in PLAINEST[:at])


def _earlier_dtypes(case: Case, dtypes: Sequence[str]) -> Iterator[Case]:
    at = dtypes.index(case.dtype) if case.dtype in dtypes else len(dtypes)
    yield from (replace(case, dtype=dtype) for dtype in dtypes[:at])
