"""One page with everything, for a browser: a file that asks nobody for anything; `opcheck.render.page` lays it out."""

from __future__ import annotations

from opcheck.core.report import AuditReport
from opcheck.render import page
from opcheck.render.view import View


def render(report: AuditReport, view: View) -> str:
    """Return the report as a page."""
    return page.render(report, registry=view.registry)
