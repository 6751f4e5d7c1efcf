"""Hand the cases to workers, and turn what comes back, or does not, into reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from opcheck.checks import all_checks
from opcheck.checks.protocol import Subject
from opcheck.core.behaviour import REFUSAL
from opcheck.core.building import BUILDING, COMPILE
from opcheck.core.case import Case
from opcheck.core.cases import Plan
from opcheck.core.outcome import Crashed, Outcome, TimedOut
from opcheck.core.policy import Contract
from opcheck.core.report import CaseReport, case_from, verdict_of
from opcheck.run.failure import blame
from opcheck.run.isolate import Death, Died, Done, Message, Pool

SLICE = 6  # cases of a work item: small enough to spread one op over all cores


def run_cases(
    pool: Pool,
    plans: Mapping[str, Plan],
    *,
    checks: Collection[str],
    skip: Sequence[str],
    timeout: float,
    covered: Callable[[str, Mapping[str, Any]], None] = lambda op, data: None,
    heard: Callable[[str, Sequence[str] | None], None] = lambda op, read: None,
    size: int = SLICE,
) -> Iterator[tuple[str, CaseReport]]:
    """Yield each case's report as it is finished, with its op; a worker's death is its case's finding.

    A case that memory ran short in beside other workers is put off until the others are done, and then judged alone.

    Args:
        checks: Names of the checks to put to every case.
        skip: Modules that workers must not import.
        timeout: Seconds after which the pool kills a silent worker, for the report.
        covered: Told for each case of an op, where that is recorded, what it reached of the kernels.
        heard: Told what was read of the project for an op, and None where a worker died over it.
        size: Cases of a work item.
    """
    asked = {"checks": list(checks), "skip": list(skip), "alone": pool.size == 1}
    items = [item for name, plan in plans.items() for item in _items(name, plan, asked, size)]
    short: dict[str, list[Mapping[str, Any]]] = {}
    judged = partial(_judged, pool, timeout=timeout, covered=covered, heard=heard, short=short)
    yield from judged(items)
    if short:
        pool.dismiss()  # an idle worker, too, holds memory of the device
    for op, entries in short.items():
        # One item at a time, which is one worker at a time.
        yield from judged([{**asked, "op": op, "cases": entries, "alone": True}])


def _judged(
    pool: Pool,
    items: Sequence[Mapping[str, Any]],
    *,
    timeout: float,
    covered: Callable[[str, Mapping[str, Any]], None],
    heard: Callable[[str, Sequence[str] | None], None],
    short: dict[str, list[Mapping[str, Any]]],
) -> Iterator[tuple[str, CaseReport]]:
    """Have items worked on. What memory ran short for is put into `short`, by its op, and not reported."""
    state = {index: _Slice(item=item) for index, item in enumerate(items)}
    for event in pool.run(items):
        part = state[event.item_index]
        op = part.item["op"]
        match event:
            case Message(body={"case": data}):
                part.left.pop(0)
                yield op, case_from(data)
            case Message(body={"short": _}):
                short.setdefault(op, []).append(part.left.pop(0))
            case Message(body={"covered": data}):
                covered(op, data)
            case Message(body={"spoilt": True}):
                part.spoilt = True
            case Message(body={"read": paths}):
                heard(op, paths)
            case Message(body=body):
                part.last = body
            case Died(death=death):
                heard(op, None)
                if not part.left:
                    continue
                if not part.spoilt:
                    entry = part.left.pop(0)
                    yield op, _lost(entry["id"], part.last, death, timeout, checks=part.item["checks"])
                if part.left:
                    rest = {**part.item, "cases": part.left}
                    state[pool.resubmit(rest)] = _Slice(item=rest)
            case Done():
                pass


@dataclass(slots=True)
class _Slice:
    """A work item in flight: its cases that are still to come, and what its worker last announced.

    Attributes:
        spoilt: Whether the worker said that it must end, for its device is unusable: no case that is left is to blame.
    """

    item: Mapping[str, Any]
    left: list[Mapping[str, Any]] = field(init=False)
    last: Mapping[str, Any] = field(default_factory=dict)
    spoilt: bool = False

    def __post_init__(self) -> None:
        self.left = list(self.item["cases"])


def _lost(
    case_id: str, last: Mapping[str, Any], death: Death, timeout: float, *, checks: Sequence[str] = ()
) -> CaseReport:
    """Report the case whose worker died: whose death it was, the worker's last announcement tells.

    Args:
        checks: Those of the item; a worker that only builds dies of nothing else.
    """
    announced = last if last.get("start") == case_id or last.get("label") == "siblings" else {}
    role, label = announced.get("role", "target"), announced.get("label", "start")
    during = "" if label == "compare" else f" (during {label})"
    where, said = blame(death.log)
    outcome: Outcome = TimedOut(role=role, seconds=timeout, where=where)
    if not death.timed_out:
        outcome = Crashed(role=role, reason=f"{death.reason}{during}", log=said, where=where)
    case = Case.parse(case_id)
    subject = Subject(contract=Contract(name=case.op, kind="elementwise", dtypes=case.dtypes, dims=()), case=case)
    building = label.startswith(BUILDING) or list(checks) == [COMPILE]
    name = COMPILE if building else REFUSAL if label == REFUSAL else "structure"
    check = all_checks()[name]
    (trial,) = check.plan(subject, {}, lambda dtype: check.limits())
    findings = check.judge(subject, {trial: outcome}, lambda dtype: check.limits())
    return CaseReport(id=case_id, verdict=verdict_of(findings), findings=findings)


def _items(op: str, plan: Plan, asked: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    entries = [{"id": item.case.id, "representative": item.representative} for item in plan.cases]
    for start in range(0, len(entries), size):
        yield {**asked, "op": op, "cases": entries[start : start + size]}
