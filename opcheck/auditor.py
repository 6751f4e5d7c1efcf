"""The straight line: plan, execute, judge; at most three rounds a case."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from opcheck.checks.protocol import Check, LimitsOf, Seen, Subject, answered, compared, inapplicable
from opcheck.core.case import Case
from opcheck.core.depicted import MOST_ELEMENTS, Depict, Depicted, part_of, parts_of
from opcheck.core.finding import Finding
from opcheck.core.outcome import Compare, Compared, Outcome, Returned, Trial
from opcheck.core.policy import Policy, limits_for
from opcheck.core.report import CaseReport, TensorRow, verdict_of
from opcheck.core.variants import programs_of
from opcheck.core.verdict import Verdict

ROUNDS = 4


class Executes(Protocol):
    """What carries out trials."""

    def execute(self, case: Case, trials: Iterable[Trial]) -> dict[Trial, Outcome]: ...


def audit_case(subject: Subject, checks: Mapping[str, Check], policy: Policy, executor: Executes) -> CaseReport:
    """Audit one case: ask the checks what they need, run it, and ask again while their answers raise new questions."""
    started = time.perf_counter()
    skipped = {name: why for name, check in checks.items() if (why := inapplicable(check, subject))}
    active = {name: check for name, check in checks.items() if name not in skipped}
    seen: dict[Trial, Outcome] = {}
    for _ in range(ROUNDS):
        wanted = _plan(active, subject, seen, policy)
        if not wanted:
            break
        seen |= executor.execute(subject.case, wanted)
    findings = _depicted(judge(active, subject, seen, policy), subject, seen, executor)
    return CaseReport(
        id=subject.case.id,
        verdict=verdict_of(findings),
        tensors=_rows(findings, seen),
        findings=findings,
        skipped=skipped,
        seconds=round(time.perf_counter() - started, 4),
    )


def judge(checks: Mapping[str, Check], subject: Subject, seen: Seen, policy: Policy) -> tuple[Finding, ...]:
    """Return all findings; a check says nothing of a tensor for which one that it requires does not hold."""
    findings: list[Finding] = []
    for name, check in checks.items():
        failed = {item.tensor for item in findings if item.check in check.requires and item.verdict is Verdict.FAIL}
        found = check.judge(subject, seen, _limits(check, subject, policy, name))
        findings += [item for item in found if item.tensor not in failed]
    return tuple(findings)


def _depicted(findings: tuple[Finding, ...], subject: Subject, seen: Seen, executor: Executes) -> tuple[Finding, ...]:
    """Give what fails its pictures, by one run more of a case that fails; what passes costs nothing."""
    evidence = compared(seen)
    if evidence is None or subject.contract.random or programs_of(subject.case.variant) is not None:
        return findings
    small = (item.tensor for item in evidence.tensors if item.numel <= MOST_ELEMENTS)
    trial = Depict(parts=parts_of(findings, small))
    if not trial.parts:
        return findings
    found = answered(executor.execute(subject.case, (trial,)), trial)
    pictures = found.pictures if isinstance(found, Depicted) else {}
    return tuple(replace(item, pictures=pictures.get(part, ())) if (part := part_of(item)) else item
                 for item in findings)  # fmt: skip


def _plan(checks: Mapping[str, Check], subject: Subject, seen: Seen, policy: Policy) -> tuple[Trial, ...]:
    """Return the trials still wanted, each once; nothing more is asked of a case whose comparison did not come back."""
    first = seen.get(Compare())
    if first is not None and not isinstance(first, Returned):
        return ()
    wanted: dict[Trial, None] = {}
    for name, check in checks.items():
        for trial in check.plan(subject, seen, _limits(check, subject, policy, name)):
            if trial not in seen:
                wanted[trial] = None
    # The comparison comes first and alone: if the target dies in it, nothing else need be tried.
    return (Compare(),) if Compare() in wanted else tuple(wanted)


def _limits(check: Check, subject: Subject, policy: Policy, name: str) -> LimitsOf:
    def of(dtype: str) -> Any:
        return limits_for(check.limits, name, policy, subject.case.op, dtype)

    return of


def _rows(findings: tuple[Finding, ...], seen: Seen) -> tuple[TensorRow, ...]:
    outcome = seen.get(Compare())
    evidence = outcome.evidence if isinstance(outcome, Returned) else None
    tensors = {item.tensor: item for item in evidence.tensors} if isinstance(evidence, Compared) else {}
    rows = []
    for item in findings:
        if item.check != "numerics" or not item.numbers:
            continue
        others = [other for other in findings if other.tensor == item.tensor]
        measured = tensors[item.tensor]
        rows.append(
            TensorRow(
                tensor=item.tensor,
                dtype=measured.dtype,
                reference_error=item.numbers["reference_error"],
                target_error=item.numbers["target_error"],
                reference_relative_error=item.numbers["reference_relative_error"],
                rounding_floor=item.numbers["rounding_floor"],
                threshold=item.numbers["threshold"],
                protocol_threshold=item.numbers["protocol_threshold"],
                gate_valid=bool(item.numbers["gate_valid"]),
                verdict=verdict_of(tuple(others)),
                condition=item.numbers.get("condition", math.nan),
                scale=item.numbers["scale"],
                decoy=measured.decoy,
                decoy_distance=measured.decoy_distance,
            )
        )
    return tuple(rows)
