"""From a registry, a commit and evidence to a decision."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opcheck.checks import limits_by_check
from opcheck.core.decision import Decision, Point, status_of
from opcheck.core.evidence import Described, Evidence, Line
from opcheck.core.kernel_coverage import COVERAGE, CoverageLimits
from opcheck.core.policy import GatePolicy
from opcheck.core.schema import meant
from opcheck.errors import UnknownOp
from opcheck.merge import cases, contract, evidence, limits, policies, sources, waivers
from opcheck.merge.git import Base, described
from opcheck.merge.reasons import Reasons
from opcheck.merge.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of the gate.

    Attributes:
        registry: Head's `registry.toml`.
        base: What to compare with; the usual branches where it is empty.
        require: Backends that need evidence beside those of base's policy.
        max_age: How old evidence may be, where base's policy allows older.
        accepted: Ops whose changed oracle a reviewer accepts.
        lines: The evidence.
        before: Evidence of base, to find families of cases that are gone.
        now: The time, in UTC.
    """

    registry: Path
    lines: Sequence[Line]
    now: datetime.datetime
    base: str = ""
    require: tuple[str, ...] = ()
    max_age: datetime.timedelta | None = None
    accepted: Collection[str] = ()
    before: Sequence[Line] = ()


def decide(request: Request) -> Decision:
    """Say whether head, which is the working tree, may merge into base.

    Raises:
        PolicyError: A registry is wrong.
        OpcheckError: There is no repository, no such base, or an op that is accepted is none.
    """
    checks = limits_by_check()
    base = Base.open(request.registry.parent, request.base)
    sides = policies.read(request.registry, base, checks)
    if unknown := sorted(set(request.accepted) - sides.head.ops.keys()):
        raise UnknownOp(f"--accept-oracle: {unknown[0]!r} is not declared{meant(unknown[0], sides.head.ops)}")
    reasons = Reasons(base=sides.base, head=sides.head)
    code = sources.of_head(request.registry.parent, sides.head)
    gate = _stricter(sides.gate, request)
    stale = Standing.of(request.registry.parent, sides.document)
    asked = evidence.Asked(ops=sides.head.ops, stale=stale, gate=gate, now=request.now)
    lines = [line for line in request.lines if isinstance(line, Evidence)]
    found = [evidence.find(op, backend, lines, asked) for op in sides.head.ops for backend in gate.backends]
    told = [line for line in request.before if isinstance(line, Evidence)]
    today = request.now.date()
    points: list[Point] = [
        *evidence.points(found, lines, sides.head.waivers, asked),
        *_broken(request.lines, stale),
        *contract.points(sides.base, sides.head, reasons),
        *cases.points(found, told, reasons),
        *limits.points(sides.base, sides.head, {**checks, COVERAGE: CoverageLimits}, reasons),
        *waivers.expired(sides.head.waivers, today),
        *waivers.grown(sides.base.waivers, sides.head.waivers),
        *waivers.unused(sides.head.waivers, today, evidence.used(sides.head.waivers, found, lines)),
        *sources.points(code, request.registry.parent, sides, base, reasons, request.accepted),
    ]
    closed = tuple(point for point in points if not point.acknowledged)
    return Decision(
        base=str(base),
        commit=base.fork,
        head=described(base.top),
        exit_status=status_of(closed, cases=sum(line.cases for line in lines if line.op in sides.head.ops)),
        points=closed,
        acknowledged=tuple(point for point in points if point.acknowledged),
        proofs=tuple(item.proof for item in found),
        notes=(*sides.notes, *sources.notes(code, sides.head)),
    )


def _stricter(gate: GatePolicy, request: Request) -> GatePolicy:
    """Return the policy with what the command line asks beside it; a flag never asks less."""
    ages = [age for age in (gate.max_age, request.max_age) if age is not None]
    backends = tuple(dict.fromkeys((*gate.backends, *request.require)))
    return replace(gate, backends=backends, max_age=min(ages, default=None))


def _broken(lines: Iterable[Line], stale: Standing) -> list[Point]:
    """Return what could not be imported when the registry, as it is now, was last described."""
    told = (item for item in lines if isinstance(item, Described) and not stale(item))
    failures = dict.fromkeys(sentence for item in told for sentence in item.failures)
    return [Point(rule="module-broken", sentence=sentence, opens="mend the import") for sentence in failures]
