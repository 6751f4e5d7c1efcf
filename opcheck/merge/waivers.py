"""Waivers: expired, covering nothing, or covering more than base's."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase

from opcheck.core.decision import Point
from opcheck.core.policy import Waiver


def expired(waivers: Iterable[Waiver], today: datetime.date) -> Iterator[Point]:
    """Yield each waiver whose last day is over."""
    for item in waivers:
        if item.until < today:
            opens = "mend the op and delete the waiver, or give a new date with a new reason"
            yield Point(rule="waiver-expired", op=_op(item), sentence=f"{item} has expired", opens=opens)


def grown(base: Collection[Waiver], head: Iterable[Waiver]) -> Iterator[Point]:
    """Yield each waiver that covers more, or longer, than one of base does; a reason that base has not opens it."""
    said = {item.reason for item in base}
    for item in head:
        if any(_within(item, before) for before in base):
            continue
        copied = ", with a reason that base gives already" if item.reason in said else ""
        yield Point(
            rule="waiver-grown",
            op=_op(item),
            sentence=f"{item} {_how(item, base)}{copied}",
            opens="give the reason why it is needed now",
            acknowledged="" if copied else item.reason,
        )


def unused(waivers: Iterable[Waiver], today: datetime.date, used: Collection[Waiver]) -> Iterator[Point]:
    """Yield each waiver in force under which no audit found anything: what it waived holds."""
    for item in waivers:
        if item.until >= today and item not in used:
            sentence = f"{item} covers nothing: what it waives holds, or is not tried"
            yield Point(rule="waiver-unused", op=_op(item), sentence=sentence, opens="delete it")


def _how(item: Waiver, base: Iterable[Waiver]) -> str:
    for before in base:
        if (before.op, before.check) == (item.op, item.check):
            if dict(before.where) == dict(item.where):
                return f"is later than base's, which ends on {before.until}"
            if before.where.items() > item.where.items():
                return "is wider than base's"
    return "is new"


def _within(item: Waiver, before: Waiver) -> bool:
    """Say whether a waiver covers nothing that one of base does not."""
    named = fnmatchcase(item.op, before.op) and fnmatchcase(item.check, before.check)
    return named and before.where.items() <= item.where.items() and item.until <= before.until


def _op(item: Waiver) -> str:
    return "" if set(item.op) & set("*?[") else item.op
