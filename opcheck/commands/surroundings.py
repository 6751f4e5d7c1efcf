"""Where a report is read: the repository around the working directory, and the summary page of a GitHub job."""

from __future__ import annotations

import os
from pathlib import Path

from opcheck.commands.streams import say
from opcheck.core.report import AuditReport
from opcheck.render.view import View

SUMMARY = "GITHUB_STEP_SUMMARY"  # the variable that names a step's summary file
MOST = 1 << 20  # bytes of it that GitHub takes; it shows nothing of a larger one


def view_of(*, verbosity: int = 0, registry: str = "", contracts: Path | None = None) -> View:
    """Return the view from the working directory.

    The repository is the nearest folder upward that has a `.git`, and where none has, that of registry.toml.
    """
    here = Path.cwd()
    file = (contracts or here / "registry.toml").absolute()
    root = _repository(here) or (file.parent if here.is_relative_to(file.parent) else here)
    folder = here.relative_to(root).as_posix()
    return View(
        verbosity=verbosity,
        registry=registry,
        root=str(root),
        folder="" if folder == "." else folder,
        contracts=str(file),
    )


def append_summary(report: AuditReport, view: View) -> None:
    """Append the report to the page of the job that this runs in, as far as there is room; elsewhere do nothing."""
    name = os.environ.get(SUMMARY)
    if not name:
        return
    from opcheck.render.formats.markdown import page

    file = Path(name)
    try:
        room = MOST - (file.stat().st_size if file.exists() else 0)
        text = page(report, view, room)
        if len(text.encode(errors="backslashreplace")) <= room:
            with file.open("a", encoding="utf-8", errors="backslashreplace") as opened:
                opened.write(text)
    except OSError as error:
        say(f"opcheck: cannot write {SUMMARY}, {file}: {error.strerror}")


def _repository(start: Path) -> Path | None:
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)
