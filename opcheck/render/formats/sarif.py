"""SARIF 2.1.0, for code scanning: a rule is a check, a result is a finding.

The format is OASIS's; what GitHub reads of it, and how much, is in
`https://docs.github.com/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning`.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from opcheck.core.report import AuditReport
from opcheck.core.verdict import Verdict
from opcheck.core.version import VERSION
from opcheck.render.plain import clean, line
from opcheck.render.remarks import Remark, remarks
from opcheck.render.view import View

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LONGEST_NAME = 300
MOST = 5_000  # results that GitHub shows of a run; it takes no file with more than 25,000


def render(report: AuditReport, view: View) -> str:
    """Return one run; rule ids and fingerprints stay the same while lines and figures change."""
    found = remarks(report, view)
    kept = found[:MOST]
    laws = {line(item.check, LONGEST_NAME): line(item.law, LONGEST_NAME) for item in reversed(kept)}
    rules = sorted(laws)
    run: dict[str, Any] = {
        "tool": {"driver": {
            "name": "opcheck", "semanticVersion": VERSION, "rules": [_rule(name, laws[name]) for name in rules],
        }},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, len(found) - len(kept))],
        "results": [_result(item, rules) for item in kept],
    }  # fmt: skip
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(name: str, law: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": name,
        "shortDescription": {"text": law or name},
        "fullDescription": {"text": law or name},
    }


def _result(item: Remark, rules: list[str]) -> dict[str, Any]:
    rule = line(item.check, LONGEST_NAME)
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": "note" if item.waived else "error" if item.verdict is Verdict.FAIL else "warning",
        "message": {"text": clean(f"{item.title}\n{item.message}").replace("](", "] (")},  # which would be a link
        "locations": [_location(item)],
        # GitHub compares the first, others whatever they know.
        "partialFingerprints": {"primaryLocationLineHash": f"{item.fingerprint}:1", "opcheck/v1": item.fingerprint},
        "properties": {
            "verdict": str(item.verdict),
            "tensor": line(item.tensor, LONGEST_NAME),
            "case": line(item.case, LONGEST_NAME),
        },
    }
    if item.waived:
        result["suppressions"] = [{"kind": "external", "justification": line(item.waived, LONGEST_NAME)}]
    return result


def _location(item: Remark) -> dict[str, Any]:
    physical = {
        "artifactLocation": {"uri": quote(item.spot.file), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": item.spot.line},
    }
    op = line(item.op, LONGEST_NAME)
    return {"physicalLocation": physical} | (
        {"logicalLocations": [{"fullyQualifiedName": op, "kind": "function"}]} if op else {}
    )


def _invocation(report: AuditReport, left_out: int) -> dict[str, Any]:
    found: dict[str, Any] = {"executionSuccessful": report.complete, "exitCode": report.exit_status}
    if left_out:
        text = f"{left_out} more results are left out; the format json has them all"
        found["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    return found
