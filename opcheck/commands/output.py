"""Where reports go: `--format FMT[=FILE]`, repeatable, and `-o FILE`."""

from __future__ import annotations

import argparse
import errno
import os
from dataclasses import dataclass
from pathlib import Path

from opcheck.commands.pictures import require
from opcheck.commands.streams import say, show
from opcheck.commands.surroundings import append_summary, view_of
from opcheck.core.report import AuditReport
from opcheck.core.schema import meant
from opcheck.errors import OpcheckError
from opcheck.render.formats import DEFAULT, names, rendered

FORMATS = names()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One report to write: its format, and its file or None for standard output."""

    format: str
    file: Path | None = None


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that say what is printed and where."""
    parser.add_argument(
        "--format", action="append", default=[], metavar="FMT[=FILE]", help=f"{', '.join(FORMATS)} (repeatable)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the report there, not to the screen")
    parser.add_argument("-q", "--quiet", action="count", default=0, help="only failures and the summary")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="every case, limitation and gap")


def targets(arguments: argparse.Namespace) -> tuple[Target, ...]:
    """Read the flags.

    Raises:
        OpcheckError: An unknown format, or two reports for one place.
    """
    found = []
    for text in arguments.format or [DEFAULT]:
        name, named, file = text.partition("=")
        if name not in FORMATS:
            raise OpcheckError(
                f"--format {name!r} is not a format; there are {', '.join(FORMATS)}{meant(name, FORMATS)}"
            )
        if named and not file:
            raise OpcheckError(f"--format {text!r} names no file; write --format {name}=FILE, or --format {name}")
        found.append(Target(format=name, file=Path(file) if file else None))
    if arguments.output is not None:
        loose = [at for at, item in enumerate(found) if item.file is None]
        if len(loose) != 1:
            raise OpcheckError("-o takes one report without a file of its own; give the others as --format FMT=FILE")
        found[loose[0]] = Target(format=found[loose[0]].format, file=arguments.output)
    places = [item.file and item.file.resolve() for item in found]
    if len(set(places)) < len(places):
        raise OpcheckError("two reports would go to the same place; give each its own as --format FMT=FILE")
    return tuple(found)


def prepare(outputs: tuple[Target, ...]) -> None:
    """Fail now, not after the audit, where a report cannot be written.

    Raises:
        OpcheckError: A folder is missing, a file cannot be written, or a format needs what is not installed.
    """
    for item in outputs:
        if item.format == "html":
            require("--format html")
        if item.file is None:
            continue
        if item.file.is_dir():
            raise OpcheckError(f"cannot write {item.file}: it is a folder; name a file in it")
        if not item.file.parent.is_dir():
            raise OpcheckError(f"cannot write {item.file}: there is no folder {item.file.parent}")
        if fault := _unwritable(item.file):
            raise OpcheckError(f"cannot write {item.file}: {fault}")


def _unwritable(file: Path) -> str:
    """Say why a file cannot be opened for writing; trying is the only test that root and read-only mounts pass."""
    fresh = not file.exists()
    if not (fresh or file.is_file()):
        return "" if os.access(file, os.W_OK) else os.strerror(errno.EACCES)
    try:
        file.open("ab").close()
    except OSError as error:
        return error.strerror or str(error)
    if fresh:
        file.unlink()
    return ""


def write(
    report: AuditReport,
    outputs: tuple[Target, ...],
    *,
    verbosity: int,
    registry: str = "",
    contracts: Path | None = None,
) -> bool:
    """Write every report, one that cannot be written to standard output, so that nothing computed is lost.

    Args:
        registry: Path of the registry where the command line named one.
        contracts: The registry.toml that was read.

    Returns:
        Whether each report went somewhere: to its file, to standard output, or to a reader that has gone away.
    """
    written = True
    view = view_of(verbosity=verbosity, registry=registry, contracts=contracts)
    for item in outputs:
        text = rendered(report, item.format, view)
        if item.format == "github":
            append_summary(report, view)
        if item.file is not None:
            try:
                item.file.write_text(text, encoding="utf-8", errors="backslashreplace")
                continue
            except OSError as error:
                say(f"opcheck: cannot write {item.file} ({error.strerror}); here it is instead")
        written = show(text) and written
    return written
