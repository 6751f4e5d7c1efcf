"""The command to run after a report: what fails again, what is wrong with the registry, or the gate."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace

from opcheck.core.building import COMPILE
from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.report import AuditReport, CaseReport, OpReport
from opcheck.core.verdict import Verdict

COMMAND = "python -m opcheck"
FEWEST_ELEMENTS = 32  # of a case, for a place in it to mean anything


def following(report: AuditReport, *, registry: str = "", whole: bool = True) -> AuditReport:
    """Return the report with the command to run next, for it and for each op that does not pass.

    Args:
        registry: Path of the registry where the command line named one.
        whole: Whether every case of every op was to run.
    """
    ops = tuple(replace(op, next=again(*pairs[0], registry)) if (pairs := failing(op)) else op for op in report.ops)
    worst = max((op for op in ops if op.next), key=lambda op: op.verdict.severity, default=None)
    if report.ok:
        step = f"{COMMAND} gate" if whole else f"{COMMAND} audit --all"
    elif worst is not None:
        return replace(report, ops=ops, next=worst.next)
    elif not report.complete:
        step = f"{COMMAND} audit --all"
    else:
        step = f"{COMMAND} lint"  # nothing ran, or what is wrong is the registry
    return replace(report, ops=ops, next=f"{step}{_where(registry)}")


def failing(op: OpReport) -> list[tuple[CaseReport, Finding]]:
    """Return what does not hold and is not waived, worst first, and of equals the one that tells most."""
    order = {case.id: math.prod(Case.parse(case.id).dims.values()) for case in op.cases}
    pairs = [(case, item) for case in op.cases for item in case.findings
             if item.verdict.severity >= Verdict.INCONCLUSIVE.severity and not item.waived]  # fmt: skip
    # A case whose errors form a pattern says more than a smaller one without, and one element forms none.
    return sorted(
        pairs,
        key=lambda pair: (
            -pair[1].verdict.severity,
            not pair[1].looks_like,
            order[pair[0].id] < FEWEST_ELEMENTS,
            order[pair[0].id],
        ),
    )


def again(case: CaseReport, item: Finding, registry: str = "") -> str:
    """Return the command that runs a case again."""
    check = f" --check {COMPILE}" if item.check == COMPILE else ""  # it does not depend on the case's values
    backend = Case.parse(case.id).backend
    return f"{COMMAND} audit{_where(registry)} --backend {backend}{check} --case {shlex.quote(case.id)}"


def _where(registry: str) -> str:
    return f" --registry {shlex.quote(registry)}" if registry else ""
