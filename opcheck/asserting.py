"""For people's own tests: a report that may not ship is an exception with the printed report in it."""

from __future__ import annotations

from opcheck.core.report import AuditReport
from opcheck.errors import AuditFailed
from opcheck.render import text


def assert_ok(report: AuditReport) -> None:
    """Raise unless a report may ship.

    Raises:
        AuditFailed: It may not; the message is the printed report.
    """
    if not report.ok:
        raise AuditFailed(f"{report.verdict}, exit status {report.exit_status}\n{text.render(report)}")
