"""The printed report, for people at a terminal: the protocol's table of each op, and its failures in full."""

from __future__ import annotations

from opcheck.core.report import AuditReport
from opcheck.render import text
from opcheck.render.plain import safe
from opcheck.render.view import View


def render(report: AuditReport, view: View) -> str:
    """Return the report as text."""
    return safe(text.render(report, verbosity=view.verbosity, registry=view.registry))
