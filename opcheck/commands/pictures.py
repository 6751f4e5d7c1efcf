"""`--pictures FOLDER`, and what drawing needs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from opcheck.commands.streams import say
from opcheck.core.report import AuditReport
from opcheck.errors import OpcheckError

NEEDED = ("jinja2", "matplotlib")


def require(flag: str) -> None:
    """Refuse a flag whose libraries are not installed.

    Raises:
        OpcheckError: One of them is missing.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise OpcheckError(f"{flag} draws with {' and '.join(missing)}; install with: pip install 'opcheck[report]'")


def prepare_folder(folder: Path | None) -> None:
    """Fail now, not after the audit, where pictures cannot be drawn or written.

    Raises:
        OpcheckError: A library is missing, or the folder cannot be made.
    """
    if folder is None:
        return
    require("--pictures")
    try:
        folder.mkdir(exist_ok=True)
        probe = folder / ".opcheck"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OpcheckError(f"cannot write pictures to {folder}: {error.strerror}") from None


def write_pictures(report: AuditReport, folder: Path | None) -> None:
    """Write every picture of a report to a file of its own."""
    if folder is None:
        return
    from opcheck.render.figures.files import files

    count = 0
    try:
        for name, text in files(report):
            (folder / name).write_text(text, encoding="utf-8")
            count += 1
    except OSError as error:
        say(f"opcheck: cannot write pictures to {folder}: {error.strerror}")
    say(f"{count} pictures in {folder}" if count else f"nothing to draw: no picture was written to {folder}")
