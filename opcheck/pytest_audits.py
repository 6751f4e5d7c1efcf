"""The audits behind the pytest plug-in: each op once, in one session of workers."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from opcheck.checks import all_checks
from opcheck.core.finding import Finding
from opcheck.core.gate import UNJUDGED, waiver_problems
from opcheck.core.policy import Level
from opcheck.core.report import AuditReport, OpReport, verdict_of
from opcheck.core.told import told
from opcheck.core.verdict import Verdict
from opcheck.errors import AuditFailed
from opcheck.render.text import failure
from opcheck.session import Options, Session, Silent

MOST_FAILURES = 8  # printed of one test


@dataclass(slots=True, kw_only=True)
class Audits:
    """Audits ops when they are first asked for, and keeps their reports."""

    registry: Path
    level: Level
    backend: str
    _sessions: dict[Level, Session] = field(default_factory=dict)
    _reports: dict[tuple[str, Level, tuple[str, ...]], AuditReport] = field(default_factory=dict)

    def report(self, op: str, *, level: Level | None = None, checks: Collection[str] = ()) -> AuditReport:
        """Return the report of one op, by its name.

        Raises:
            UnknownOp: It is not registered or not declared.
        """
        level = level or self.level
        key = (op, level, tuple(sorted(checks)))
        if key not in self._reports:
            opened = self._session(level)
            asked = replace(opened, options=replace(opened.options, ops=(op,), checks=key[2]))
            report = asked.audit(Silent())
            if not report.complete:  # Ctrl-C, which the session has taken
                raise KeyboardInterrupt
            self._reports[key] = report
        return self._reports[key]

    def judge(self, op: str, check: str, accept: Collection[Verdict], wanted: Collection[str]) -> None:
        """Pass, skip or fail the test of one check of one op.

        Args:
            wanted: The checks of the op whose tests are to run; no other is made, but those that they require.

        Raises:
            AuditFailed: The verdict is not acceptable.
        """
        (found,) = self.report(op, checks=_with_required(wanted)).ops
        pairs = [(case, item) for case in found.cases for item in case.findings if item.check in (check, *UNJUDGED)]
        findings = tuple(item for _, item in pairs)
        if not found.cases:
            raise AuditFailed(f"{op}: no case was audited; {'; '.join(found.not_covered) or 'its contract plans none'}")
        if not findings:
            raise pytest.skip.Exception(_why(found, check), _use_item_location=True)
        if verdict_of(findings) not in accept:
            raise AuditFailed(_printed(found, check))
        if reason := _waived(findings):
            pytest.xfail(f"waived: {reason}")

    def judge_proof(self, op: str, wanted: Collection[str]) -> None:
        """Pass where each tensor of an op could be judged in some case; skip where not all checks were made.

        Raises:
            AuditFailed: No case could judge a tensor.
        """
        checks = _with_required(wanted)
        if checks:
            raise pytest.skip.Exception("it takes all checks of the op", _use_item_location=True)
        (found,) = self.report(op).ops
        if found.problems:
            raise AuditFailed("\n".join(found.problems))

    def judge_registry(self) -> None:
        """Fail where registrations and contracts disagree, or a waiver has expired.

        Raises:
            AuditFailed: They do.
        """
        opened = self._session(self.level)
        stale = waiver_problems(opened.policy.waivers, datetime.date.today(), set(), whole=False)
        if problems := [*opened.problems, *stale]:
            raise AuditFailed("\n".join(problems))

    def close(self) -> None:
        """End the workers."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def _session(self, level: Level) -> Session:
        if level not in self._sessions:
            options = Options(registry=self.registry, level=level, backend=self.backend, plugins=False)
            self._sessions[level] = Session.open(options)
        return self._sessions[level]


def _with_required(wanted: Collection[str]) -> tuple[str, ...]:
    """Return checks with all that they require, or nothing where that is all there are: no check is left out then."""
    known = all_checks()
    found = set(wanted)
    while missing := {name for check in found for name in known[check].requires} - found:
        found |= missing
    return tuple(sorted(found)) if len(found) < len(known) - 1 else ()


def _why(op: OpReport, check: str) -> str:
    reasons = dict.fromkeys(case.skipped[check] for case in op.cases if check in case.skipped)
    return "; ".join(list(reasons)[:3]) or "no case gave it anything to judge"


def _printed(op: OpReport, check: str) -> str:
    wrong = [item for item in told(op.cases) if item.finding.check in (check, *UNJUDGED)]
    shown = [failure(item.case, item.finding, more=item.more) for item in wrong[:MOST_FAILURES]]
    left = [f"{len(wrong) - MOST_FAILURES} more kinds of failure"] if len(wrong) > MOST_FAILURES else []
    return "\n\n".join([*shown, *left]) or f"{op.op}: {check} passes with limitations, which the gate does not accept"


def _waived(findings: Collection[Finding]) -> str:
    return next((item.waived for item in findings if item.waived), "")
