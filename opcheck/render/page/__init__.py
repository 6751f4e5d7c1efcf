"""The whole report as one page: a file that asks nobody for anything, for a screen of any width, and for paper."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

from opcheck.core.report import AuditReport
from opcheck.render.page.content import content
from opcheck.render.plain import clean


def render(report: AuditReport, *, registry: str = "") -> str:
    """Return the page.

    Args:
        registry: Path of the registry where the command line named one; a failure's own command line names it too.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("opcheck.render", "page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=lambda value: clean(value) if type(value) is str else value,
    )  # fmt: skip
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    return environment.get_template("page.html.j2").render(
        **content(report, registry), style=Markup(style), script=Markup(script), script_digest=_digest(script),
        svg=Markup,
    )  # fmt: skip


def _asset(name: str) -> str:
    return resources.files("opcheck.render.page").joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> Any:
    """Return what a page's policy knows its own script by, so that it runs no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
