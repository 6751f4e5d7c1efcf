"""The whole report as one JSON object; its schema ships as `opcheck/schemas/report.schema.json`."""

from __future__ import annotations

import json
import re

from opcheck.core.report import AuditReport, to_json
from opcheck.render.plain import sound
from opcheck.render.view import View

_NUMBER = r"(?:-?[\d.]+(?:e[-+]\d+)?|\"NaN\"|\"-?Infinity\")"
_NUMBERS = re.compile(rf"\[\n\s*({_NUMBER}(?:,\n\s*{_NUMBER})*)\n\s*\]")


def render(report: AuditReport, view: View | None = None) -> str:
    """Return the report as JSON: keys sorted, non-finite numbers as strings, no time stamps."""
    text = json.dumps(sound(to_json(report)), indent=2, sort_keys=True, allow_nan=False)
    # A line of a picture is a line of the file; no string holds a line break, so that this finds numbers only.
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"
