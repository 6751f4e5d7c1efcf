"""The command to run after a report: what fails again, what is wrong with the registry, or the gate."""

from __future__ import annotations

import shlex
from dataclasses import replace

from opcheck.core.building import COMPILE
from opcheck.core.case import Case
from opcheck.core.report import AuditReport, OpReport
from opcheck.core.told import told
from opcheck.errors import BadCase

COMMAND = "python -m opcheck"
UNREGISTERED = "verify::"  # ops that only a script knows: no command line runs them again


def following(report: AuditReport, *, registry: str = "", whole: bool = True) -> AuditReport:
    """Return the report with the command to run next, for it and for each op that does not pass.

    Args:
        registry: Path of the registry where the command line named one.
        whole: Whether every case of every op was to run.
    """
    ops = tuple(replace(op, next=_next(op, registry)) for op in report.ops)
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


def _next(op: OpReport, registry: str) -> str:
    worst = told(op.cases)
    return again(worst[0].case.id, worst[0].finding.check, registry) if worst else ""


def again(case_id: str, check: str, registry: str = "") -> str:
    """Return the command line that runs a case again, empty where none does."""
    try:
        parsed = Case.parse(case_id)
    except (BadCase, ValueError):
        return ""
    if parsed.op.startswith(UNREGISTERED):
        return ""
    only = f" --check {COMPILE}" if check == COMPILE else ""  # it does not depend on the case's values
    return f"{COMMAND} audit{_where(registry)} --backend {parsed.backend}{only} --case {shlex.quote(case_id)}"


def _where(registry: str) -> str:
    return f" --registry {shlex.quote(registry)}" if registry else ""
