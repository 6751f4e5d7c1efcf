"""Limits that are looser than base's, each told once, at the table that makes it so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from opcheck.core.decision import Point
from opcheck.core.policy import DTYPES, ByWidth, Override, Policy, limits_for, looser, plain
from opcheck.core.schema import join
from opcheck.declared.loosened import needed
from opcheck.merge.reasons import Reasons

DEFAULTS = "defaults"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The table of head from which a limit has its value: none where opcheck's own number holds again.

    Attributes:
        owner: The op that the table belongs to, empty for the defaults.
        reason: What stands beside the limit there, where base has it not.
    """

    owner: str
    check: str
    dtype: str = ""
    set: bool = False
    reason: str = ""

    def path(self, limit: str) -> str:
        """Return the limit's dotted path in registry.toml."""
        above = join("op", self.owner) if self.owner else DEFAULTS
        return join(join(join(above, self.check), self.dtype) if self.dtype else join(above, self.check), limit)


@dataclass(slots=True, kw_only=True)
class _Loosened:
    """One limit at one table, with the element types and the ops for which it is looser."""

    told: str
    dtypes: dict[str, None] = field(default_factory=dict)
    ops: dict[str, None] = field(default_factory=dict)


def points(base: Policy, head: Policy, limits: Mapping[str, type], reasons: Reasons) -> Iterator[Point]:
    """Yield each limit that asks less than base's does."""
    found: dict[tuple[Source, str], _Loosened] = {}
    for op, dtypes in _subjects(base, head):
        for check, cls in limits.items():
            for dtype in dtypes:
                for name, told in _looser(cls, check, base, head, op, dtype):
                    key = _source(base, head, check, op, dtype, name), name
                    item = found.setdefault(key, _Loosened(told=told))
                    item.dtypes[dtype] = item.ops[op] = None
    for (source, name), item in found.items():
        yield _point(source, name, item, reasons)


def _subjects(base: Policy, head: Policy) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the ops whose limits may differ, with their element types; first, as "", an op without limits of its own.

    An op that base has not has nothing to be loosened.
    """
    same = base.defaults == head.defaults
    if not same:
        yield "", DTYPES
    for name, before in base.ops.items():
        after = head.ops.get(name)
        if after is not None and not (same and before.overrides == after.overrides):
            yield name, needed(before.dtypes, before.mixed, before.overrides)


def _looser(cls: type, check: str, base: Policy, head: Policy, op: str, dtype: str) -> Iterator[tuple[str, str]]:
    """Yield each limit of a check that is looser for an op and type, with what it is and was in words."""
    before: Any = limits_for(cls, check, base, op, dtype)
    after: Any = limits_for(cls, check, head, op, dtype)
    for item in fields(cls):
        new, old = _of(getattr(after, item.name), dtype), _of(getattr(before, item.name), dtype)
        if _asks_less(new, old, item.metadata.get("loose", "higher")):
            yield item.name, f"is {plain(new)}, {plain(old)} in base"


def _asks_less(new: Any, old: Any, loose: str) -> bool:
    """Say whether a limit asks less: a list that lost a name does, and a number that has no looser side if it moved."""
    if isinstance(old, tuple):
        return bool(set(old) - set(new))
    return bool(new != old) if loose == "neither" else looser(new, old, loose)


def _of(value: Any, dtype: str) -> Any:
    return value.of(dtype) if isinstance(value, ByWidth) else value


def setter(policy: Policy, check: str, op: str, dtype: str, name: str) -> tuple[str, Override] | None:
    """Return the table that sets a limit for an op and type, with its owner; None where opcheck's own number holds."""
    found = None
    for owner in dict.fromkeys(("", op)):
        for wanted in ("", dtype):
            for layer in _tables(policy, owner):
                if (layer.check, layer.dtype) == (check, wanted) and name in layer.values:
                    found = owner, layer
    return found


def _source(base: Policy, head: Policy, check: str, op: str, dtype: str, name: str) -> Source:
    """Return where a limit of an op and type comes from in head."""
    if (found := setter(head, check, op, dtype, name)) is None:
        before = setter(base, check, op, dtype, name)
        return Source(owner=before[0] if before else "", check=check)
    owner, layer = found
    return Source(owner=owner, check=check, dtype=layer.dtype, set=True, reason=_fresh(layer, _tables(base, owner)))


def _tables(policy: Policy, owner: str) -> tuple[Override, ...]:
    if not owner:
        return policy.defaults
    return policy.ops[owner].overrides if owner in policy.ops else ()


def _fresh(layer: Override, before: Iterable[Override]) -> str:
    """Return the reason beside a limit where no limit of the check gives the same in base."""
    said = any((layer.check, layer.reason) == (item.check, item.reason) for item in before)
    return "" if said else layer.reason


def _point(source: Source, name: str, item: _Loosened, reasons: Reasons) -> Point:
    path, ops = source.path(name), [op for op in item.ops if op]
    dtypes = f" for {', '.join(item.dtypes)}" if item.dtypes.keys() != set(DTYPES) else ""
    many = f" ({len(ops)} {'op' if len(ops) == 1 else 'ops'})" if ops and not source.owner else ""
    subject = source.owner or "*"
    change = f'[[change]] op = "{subject}", what = "{source.check}", reason = "..."'
    beside = f"a reason beside it that base has not, or {change}" if source.set else change
    reason = source.reason or reasons.of(subject, source.check)
    return Point(
        rule="limit-loosened",
        op=source.owner,
        sentence=f"{path} {item.told}{dtypes}{many}{'' if reason else ': looser, without a new reason'}",
        opens=f"tighten it again, or give {beside}",
        acknowledged=reason,
    )
