"""The whole report as one JSON object; its schema ships as `opcheck/schemas/report.schema.json`."""

from __future__ import annotations

import json

from opcheck.core.report import AuditReport, to_json
from opcheck.render.plain import sound
from opcheck.render.view import View


def render(report: AuditReport, view: View | None = None) -> str:
    """Return the report as JSON: keys sorted, non-finite numbers as strings, no time stamps."""
    return json.dumps(sound(to_json(report)), indent=2, sort_keys=True, allow_nan=False) + "\n"
