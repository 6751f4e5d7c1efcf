"""Annotations of a pull request's files: workflow commands of GitHub Actions, worst first.

GitHub shows 10 errors, 10 warnings and 10 notices of a step, so no more are written; the rest is counted in the last
line. `https://docs.github.com/actions/reference/workflow-commands-for-github-actions` has the syntax.
"""

from __future__ import annotations

from collections import Counter

from opcheck.core.report import AuditReport
from opcheck.core.verdict import Verdict
from opcheck.render.plain import clean, line
from opcheck.render.remarks import Remark, counted, remarks, summary
from opcheck.render.view import View

MOST = 10  # of one kind
LONGEST_TITLE = 200


def render(report: AuditReport, view: View) -> str:
    """Return one line for each annotation: errors are failures, warnings doubts, notices failures that are waived."""
    seen: Counter[str] = Counter()
    lines = []
    for item in remarks(report, view):
        kind = kind_of(item)
        seen[kind] += 1
        if seen[kind] <= MOST:
            lines.append(_annotation(kind, item))
    left = [counted(count - MOST, f"more {kind}") for kind, count in seen.items() if count > MOST]
    lines.append("; ".join((f"opcheck: {summary(report)}", *left)))
    return "".join(f"{item}\n" for item in lines)


def kind_of(item: Remark) -> str:
    """Return the kind of annotation that a remark becomes."""
    if item.waived:
        return "notice"
    return "error" if item.verdict is Verdict.FAIL else "warning"


def _annotation(kind: str, item: Remark) -> str:
    properties = {"file": item.spot.file, "line": item.spot.line, "title": line(item.title, LONGEST_TITLE)}
    given = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{kind} {given}::{_data(clean(item.message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
