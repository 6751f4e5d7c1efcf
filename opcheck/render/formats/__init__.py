"""The formats of a report: one file is one format, named after it, with `render(report, view) -> str`.

They are found by walking this folder, and imported when they are asked for.
"""

from __future__ import annotations

import importlib
import pkgutil

from opcheck.core.report import AuditReport
from opcheck.render.view import View

DEFAULT = "table"


def names() -> tuple[str, ...]:
    """Return the names of all formats, the default first."""
    found = {info.name for info in pkgutil.iter_modules(__path__)}
    return (DEFAULT, *sorted(found - {DEFAULT}))


def rendered(report: AuditReport, name: str, view: View) -> str:
    """Return the report in the format of that name."""
    module = importlib.import_module(f"{__name__}.{name}")
    return str(module.render(report, view))
