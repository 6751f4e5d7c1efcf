"""Limits that could be tighter: what the evidence would still pass with, and room to spare. Nothing is loosened.

An audit notes how much of its limit each check used at most, measured over allowed. What is allowed grows at most as
fast as the factor in it, so a factor that is cut to the share used, times the room, still allows all that was measured
as many times over as the room says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from opcheck.core.evidence import Evidence
from opcheck.core.kernel_coverage import COVERAGE, CoverageLimits
from opcheck.core.policy import WIDE, ByWidth, Override, Policy, limits_for, plain
from opcheck.core.schema import join
from opcheck.declared.loosened import needed
from opcheck.merge.limits import DEFAULTS, setter

FACTORS: Mapping[str, str] = {"numerics": "fudge_factor", "slices": "slice_factor", "ulp": "max_ulp"}
ROOM = 2.0
_LINES = "kernel lines"  # how evidence calls the lines that were reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A tighter limit, for the table that sets it.

    Attributes:
        table: The table's dotted path.
        value: What to write, as TOML; empty where the line can go, as opcheck's own number will do.
        was: What the table says.
        used: The share of it that was used at most.
    """

    table: str
    limit: str
    value: str
    was: str
    used: float

    def __str__(self) -> str:
        told = f"# {self.was} so far, of which {self.used:.0%} was used at most"
        what = f"{self.limit} = {self.value}" if self.value else f"# delete {self.limit}: opcheck's own number will do"
        return f"[{self.table}]\n{what}  {told}" if self.value else f"[{self.table}]\n{what}\n{told}"


@dataclass(slots=True)
class _Table:
    """A table that sets a limit, and what of it each width of element type needs."""

    owner: str
    layer: Override
    needs: dict[bool, float] = field(default_factory=dict)
    used: float = 0.0
    known: bool = True


def proposals(
    policy: Policy, proven: Mapping[str, Sequence[Evidence]], limits: Mapping[str, type], room: float = ROOM
) -> Iterator[Proposal]:
    """Yield a tighter value for each limit that a table of the file sets looser than need be.

    Args:
        proven: By op, the evidence that counts, one line for each backend needed; an op of which one lacks has none.
        limits: Each check's limits.
        room: How many times what was measured must still be allowed.
    """
    for check, name in FACTORS.items():
        if check in limits:
            yield from _factors(policy, proven, check, limits[check], name, room)
    yield from _coverage(policy, proven)


def _factors(
    policy: Policy, proven: Mapping[str, Sequence[Evidence]], check: str, cls: type, name: str, room: float
) -> Iterator[Proposal]:
    tables: dict[tuple[str, str], _Table] = {}
    own: Any = next(item.default for item in fields(cls) if item.name == name)
    for op, contract in policy.ops.items():
        for dtype in needed(contract.dtypes, contract.mixed, contract.overrides):
            if (found := setter(policy, check, op, dtype, name)) is None:
                continue
            table = tables.setdefault((found[0], found[1].dtype), _Table(*found))
            held = _of(getattr(limits_for(cls, check, policy, op, dtype), name), dtype)
            shares = [line.used.get(f"{check} {dtype}") for line in proven.get(op, ())]
            known = [share for share in shares if share is not None]
            table.known &= bool(shares) and len(known) == len(shares)
            share = max(known, default=1.0)
            table.used = max(table.used, share)
            # Below opcheck's own number nothing is proposed: that is where right kernels begin to be refused.
            least = max(min(held, _rounded(held * share * room)), _of(own, dtype))
            table.needs[dtype in WIDE] = max(table.needs.get(dtype in WIDE, 0.0), least)
    for table in tables.values():
        if table.known and (proposal := _proposal(table, check, name, own)) is not None:
            yield proposal


def _proposal(table: _Table, check: str, name: str, own: Any) -> Proposal | None:
    """Return what a table could say, None where it says as much or as little already."""
    was = table.layer.values[name]
    old = {wide: _width(was, wide) for wide in table.needs}
    new = {wide: min(table.needs[wide], old[wide]) for wide in table.needs}
    if new == old:
        return None
    needless = all(new[wide] <= _width(own, wide) for wide in new)
    return Proposal(
        table=_path(table.owner, check, table.layer.dtype),
        limit=name,
        value="" if needless else _toml(new, was),
        was=_toml(old, was),
        used=table.used,
    )


def _coverage(policy: Policy, proven: Mapping[str, Sequence[Evidence]]) -> Iterator[Proposal]:
    """Yield higher minima of the lines reached, for ops whose own table asks one."""
    for op in policy.ops:
        found = setter(policy, COVERAGE, op, "", "lines")
        shares = [share for line in proven.get(op, ()) if (share := _reached(line)) is not None]
        if found is None or found[0] != op or not shares:
            continue
        held = limits_for(CoverageLimits, COVERAGE, policy, op, "").lines
        if (new := math.floor(min(shares) * 100) / 100) > held:
            yield Proposal(
                table=_path(op, COVERAGE, ""), limit="lines", value=f"{new:g}", was=f"{held:g}", used=held / new
            )


def _reached(line: Evidence) -> float | None:
    """Return the share of an op's kernel lines that its cases reached, None where that was not recorded."""
    reached, _, total = str(line.coverage.get(_LINES, "")).partition(" of ")
    return int(reached) / int(total) if reached.isdigit() and total.isdigit() and int(total) else None


def _path(owner: str, check: str, dtype: str) -> str:
    path = join(join("op", owner) if owner else DEFAULTS, check)
    return join(path, dtype) if dtype else path


def _of(value: Any, dtype: str) -> float:
    return float(value.of(dtype) if isinstance(value, ByWidth) else value)


def _width(value: Any, wide: bool) -> float:
    return float((value.wide if wide else value.narrow) if isinstance(value, ByWidth) else value)


def _rounded(value: float) -> float:
    """Round up to two digits: a limit is written by people."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.2g}")


def _toml(values: Mapping[bool, float], was: Any) -> str:
    """Write a limit as TOML: one number, or one for each width where they differ."""
    if len(set(values.values())) == 1:
        return plain(next(iter(values.values())))
    both = {wide: values.get(wide, _width(was, wide)) for wide in (False, True)}
    return f"{{ narrow = {plain(both[False])}, wide = {plain(both[True])} }}"


def told(found: Iterable[Proposal]) -> str:
    """Return the lines to change, as TOML."""
    return "\n\n".join(map(str, found))
