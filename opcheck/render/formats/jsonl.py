"""JSON lines for scripts: one line for the audit, one for each op, one for each case, in the order of the plan.

Each is the object that the format `json` nests, with a `type`, and without the seconds: the same results give the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from opcheck.core.report import AuditReport, to_json
from opcheck.render.plain import sound
from opcheck.render.view import View


def render(report: AuditReport, view: View) -> str:
    """Return the report as JSON lines: keys sorted, non-finite numbers as strings."""
    lines = (json.dumps(sound(item), sort_keys=True, allow_nan=False) for item in _objects(to_json(report)))
    return "".join(f"{item}\n" for item in lines)


def _objects(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "audit", **_without(report, "ops")}
    for op in report["ops"]:
        coverage = _without(op["coverage"], "estimated_seconds")
        yield {"type": "op", **_without(op, "cases"), "coverage": coverage}
        for case in op["cases"]:
            yield {"type": "case", "op": op["op"], **_without(case, "seconds")}


def _without(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != name}
