"""Find a case's failure and shrink it, each candidate in a worker that may crash or hang."""

from __future__ import annotations

import time
from dataclasses import dataclass

from opcheck.checks import all_checks
from opcheck.core.case import Case
from opcheck.core.cases import Plan, Planned
from opcheck.core.factors import dtypes
from opcheck.core.finding import Finding
from opcheck.core.report import CaseReport
from opcheck.core.shrink import Shrunk, same_failure, shrink
from opcheck.core.verdict import Verdict
from opcheck.session import Session
from opcheck.session.handout import run_cases

#: Times in a row that a smaller case of a random op must fail: two draws over few elements are often equal by chance.
RANDOM_TIMES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """The smallest case that fails as the given one does, and its failure."""

    shrunk: Shrunk
    finding: Finding


def audited(session: Session, case: Case, checks: tuple[str, ...]) -> CaseReport:
    """Audit one case by some checks, as the representative case of its element type."""
    plan = Plan(cases=(Planned(case=case, representative=True),))
    ((_, report),) = run_cases(
        session.pool, {case.op: plan}, checks=checks, skip=session.skip, timeout=session.options.timeout
    )
    return report


def failures(report: CaseReport) -> tuple[Finding, ...]:
    """Return the failures of a case, those that others rest on first."""
    return tuple(item for item in report.findings if item.verdict is Verdict.FAIL)


def needed(check: str) -> tuple[str, ...]:
    """Return a check and all that it requires, in the order of the checks."""
    checks = all_checks()
    wanted = {check}
    while more := {name for item in wanted for name in checks[item].requires} - wanted:
        wanted |= more
    return tuple(name for name in checks if name in wanted)


def smallest(session: Session, case: Case, finding: Finding, seconds: float) -> Smallest:
    """Shrink a case for a number of seconds; the failing check and what it requires are all that is run.

    A candidate under way is finished, so it may take a worker's timeout longer.
    """
    found = {case.id: finding}
    checks = needed(finding.check)
    until = time.monotonic() + seconds

    contract = session.policy.ops[case.op]

    def fails(candidate: Case) -> bool:
        return all(failed(candidate) for _ in range(RANDOM_TIMES if contract.random else 1))

    def failed(candidate: Case) -> bool:
        for item in failures(audited(session, candidate, checks)):
            if same_failure(item, finding):
                found[candidate.id] = item
                return True
        return False

    judged = dtypes(contract, session.registry.refused)
    shrunk = shrink(case, contract, judged, fails, late=lambda: time.monotonic() > until)
    return Smallest(shrunk=shrunk, finding=found[shrunk.case.id])
