"""Is there evidence, for what the op is now, on each backend that a merge needs; and what does it say?"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from opcheck.core.age import told
from opcheck.core.decision import Point, Proof, Rule
from opcheck.core.evidence import Evidence
from opcheck.core.policy import LEVELS, GatePolicy, Waiver
from opcheck.core.verdict import Verdict

_FUTURE = datetime.timedelta(days=1)  # what clocks of two machines may differ by


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What evidence must be of.

    Attributes:
        ops: The ops that head declares.
        stale: Says why a line is not of what is here now, empty where it is.
        gate: Base's policy, with what the command line adds to it.
        now: The time, in UTC.
    """

    ops: Collection[str]
    stale: Callable[[Evidence], str]
    gate: GatePolicy
    now: datetime.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a line of evidence does not count."""

    rule: Rule
    sentence: str
    opens: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is for one op on one required backend.

    Attributes:
        line: The evidence that counts, or, where there is a fault, the one that comes nearest to it.
    """

    op: str
    backend: str
    line: Evidence | None
    fault: Fault | None = None

    @property
    def proof(self) -> Proof:
        """The same for the report."""
        state = self.fault.rule.removeprefix("evidence-") if self.fault else "current"
        if self.line is None:
            return Proof(op=self.op, backend=self.backend, state=state)
        line = self.line
        return Proof(
            op=self.op, backend=self.backend, state=state, verdict=line.verdict, level=line.level, cases=line.cases,
            device=line.device, finished=line.finished,
        )  # fmt: skip


def find(op: str, backend: str, lines: Sequence[Evidence], asked: Asked) -> Found:
    """Return the newest evidence that counts; where none does, the nearest, and what it lacks."""
    of_op = [line for line in lines if line.op == op]
    here = sorted((line for line in of_op if _on(line, backend)), key=lambda line: line.finished, reverse=True)
    if not here:
        return Found(op=op, backend=backend, line=None, fault=_missing(op, backend, of_op, asked))
    found = [(line, list(faults(line, backend, asked))) for line in here]
    line, least = min(found, key=lambda item: len(item[1]))  # of equal ones the newest
    return Found(op=op, backend=backend, line=line, fault=least[0] if least else None)


def points(
    found: Iterable[Found], lines: Sequence[Evidence], waivers: Iterable[Waiver], asked: Asked
) -> Iterator[Point]:
    """Yield what is missing, and what the evidence says against the merge."""
    in_force = {str(item) for item in waivers if item.until >= asked.now.date()}
    counted: dict[int, None] = {}
    for item in found:
        if item.fault is not None:
            opens = item.fault.opens or _run(item.backend, item.op, asked)
            yield Point(rule=item.fault.rule, op=item.op, sentence=item.fault.sentence, opens=opens)
        elif item.line is not None and id(item.line) not in counted:
            counted[id(item.line)] = None
            yield from _said(item.line, in_force, asked)
    for line in lines:
        if id(line) not in counted and line.verdict == str(Verdict.FAIL) and _speaks(line, lines, asked):
            yield from _said(line, in_force, asked)


def faults(line: Evidence, backend: str, asked: Asked) -> Iterator[Fault]:
    """Yield each reason for which a line of the right backend does not count, the first to be mended first."""
    whose = f"{line.op}: its evidence on {place(line)}"
    if not line.whole:
        sentence = f"{whose} is of a part of its cases or checks (-k, --case, --check, -x, or interrupted)"
        yield Fault(rule="evidence-partial", sentence=sentence)
    elif line.level not in LEVELS[LEVELS.index(asked.gate.level) :]:
        sentence = f"{whose} is of level {line.level}; the merge needs {asked.gate.level}"
        yield Fault(rule="evidence-partial", sentence=sentence)
    if what := asked.stale(line):
        yield Fault(rule="evidence-stale", sentence=f"{whose} is stale: {what}")
    if (fault := _old(line, whose, asked)) is not None:
        yield fault


def place(line: Evidence) -> str:
    """Return where a line is from: its backend and, on a GPU, which."""
    return line.backend + (f":{line.capability}" if line.capability else "")


def _old(line: Evidence, whose: str, asked: Asked) -> Fault | None:
    if asked.gate.max_age is None:
        return None
    try:
        finished = datetime.datetime.fromisoformat(line.finished)
    except ValueError:
        return Fault(rule="evidence-old", sentence=f"{whose} does not say when it was made")
    age = asked.now - (finished if finished.tzinfo else finished.replace(tzinfo=datetime.UTC))
    if age < -_FUTURE:
        return Fault(rule="evidence-old", sentence=f"{whose} is dated in the future, {line.finished}")
    if age > asked.gate.max_age:
        allowed = told(asked.gate.max_age)
        return Fault(rule="evidence-old", sentence=f"{whose} is {told(age)} old; it may be {allowed} old")
    return None


def _missing(op: str, backend: str, others: Iterable[Evidence], asked: Asked) -> Fault:
    places = ", ".join(dict.fromkeys(f"{place(line)} ({line.device})" for line in others))
    there = f"; there is of {places}" if places else ""
    return Fault(rule="evidence-missing", sentence=f"{op}: there is no evidence on {backend}{there}")


def _on(line: Evidence, backend: str) -> bool:
    """Say whether a line is from a backend: `cuda` is any GPU, `cuda:sm_90` one of that architecture."""
    wanted, _, capability = backend.partition(":")
    return line.backend == wanted and capability in ("", line.capability)


def _run(backend: str, op: str, asked: Asked) -> str:
    level = "" if asked.gate.level == "standard" else f" --level {asked.gate.level}"
    kind, _, capability = backend.partition(":")
    where = f" on a GPU of {capability}" if capability else " on a GPU" if kind == "cuda" else ""
    return f"run `python -m opcheck audit --backend {kind}{level} '{op}'`{where}"


def _said(line: Evidence, in_force: set[str], asked: Asked) -> Iterator[Point]:
    """Yield what evidence that counts says against the merge."""
    whose = f"{line.op} on {place(line)}"
    again = _run(place(line), line.op, asked)
    if not line.cases:
        yield Point(rule="no-cases", op=line.op, sentence=f"{whose}: no case was audited", opens=again)
        return
    if line.verdict not in map(str, asked.gate.accept):
        why = f": {line.problems[0]}" if line.problems else ""
        opens = f"mend it and {again}"
        if line.verdict == str(Verdict.INCONCLUSIVE):
            opens += ", or have [gate] accept of base take INCONCLUSIVE"
        yield Point(rule="verdict", op=line.op, sentence=f"{whose} is {line.verdict}{why}", opens=opens)
    for words in line.waivers:
        if words not in in_force:
            sentence = f"{whose}: its verdict rests on what is no waiver in force: {words}"
            yield Point(rule="verdict", op=line.op, sentence=sentence, opens=again)


def _speaks(line: Evidence, lines: Iterable[Evidence], asked: Asked) -> bool:
    """Say whether a line is of the op as it is now and no newer one of the same machine and cases answers it."""
    if line.op not in asked.ops or asked.stale(line):
        return False
    newer = (
        item for item in lines if item.finished > line.finished and (item.op, place(item)) == (line.op, place(line))
    )
    return not any(item.whole and not asked.stale(item) for item in newer)


def used(waivers: Iterable[Waiver], found: Iterable[Found], lines: Sequence[Evidence]) -> frozenset[Waiver]:
    """Return the waivers that evidence uses, and those of which it cannot tell: not all that they name was audited."""
    entries = list(found)
    said = {words for line in lines for words in line.waivers}
    backends = {line.backend for line in lines}
    return frozenset(
        item
        for item in waivers
        if str(item) in said
        or any(entry.fault is not None and item.concerns(entry.op) for entry in entries)
        or item.where.get("backend", next(iter(backends), "")) not in backends
    )
