"""GitLab's code quality report: a JSON array, shown in the merge request's widget and beside its changed lines.

`https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format` has the fields.
"""

from __future__ import annotations

import json
from typing import Any

from opcheck.core.report import AuditReport
from opcheck.core.verdict import Verdict
from opcheck.render.plain import line
from opcheck.render.remarks import GATE, Remark, remarks
from opcheck.render.view import View


def render(report: AuditReport, view: View) -> str:
    """Return one object for each remark; fingerprints have no line, so a finding stays itself when code moves."""
    return json.dumps([_issue(item) for item in remarks(report, view)], indent=2) + "\n"


def _issue(item: Remark) -> dict[str, Any]:
    return {
        "description": line(f"{item.title}: {item.law} {item.detail}"),
        "check_name": line(f"opcheck/{item.check}"),
        "fingerprint": item.fingerprint,
        "severity": _severity(item),
        "location": {"path": item.spot.file, "lines": {"begin": item.spot.line}},
    }


def _severity(item: Remark) -> str:
    if item.waived:
        return "info"
    if item.verdict is not Verdict.FAIL:
        return "major"
    return "blocker" if item.check == GATE else "critical"
