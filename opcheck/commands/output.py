"""Where reports go: `--format FMT[=FILE]`, repeatable, and `-o FILE`."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from opcheck.core.report import AuditReport
from opcheck.errors import OpcheckError

FORMATS = ("table", "json")


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
    for text in arguments.format or ["table"]:
        name, _, file = text.partition("=")
        if name not in FORMATS:
            raise OpcheckError(f"--format {name!r} is not a format; there are {', '.join(FORMATS)}")
        found.append(Target(format=name, file=Path(file) if file else None))
    if arguments.output is not None:
        loose = [at for at, item in enumerate(found) if item.file is None]
        if len(loose) != 1:
            raise OpcheckError("-o takes one report without a file of its own; give the others as --format FMT=FILE")
        found[loose[0]] = Target(format=found[loose[0]].format, file=arguments.output)
    places = [item.file for item in found]
    if len(set(places)) < len(places):
        raise OpcheckError("two reports would go to the same place; give each its own as --format FMT=FILE")
    return tuple(found)


def prepare(outputs: tuple[Target, ...]) -> None:
    """Fail now, not after the audit, where a report cannot be written.

    Raises:
        OpcheckError: A folder is missing, or a file cannot be written.
    """
    for item in outputs:
        if item.file is None:
            continue
        folder = item.file.parent
        if not folder.is_dir():
            raise OpcheckError(f"cannot write {item.file}: there is no folder {folder}")
        if item.file.is_dir() or not os.access(item.file if item.file.exists() else folder, os.W_OK):
            raise OpcheckError(f"cannot write {item.file}: it is a folder, or not writable")


def write(report: AuditReport, outputs: tuple[Target, ...], *, verbosity: int) -> None:
    """Write every report; one that cannot be written goes to standard output, so that nothing computed is lost."""
    for item in outputs:
        text = rendered(report, item.format, verbosity)
        if item.file is None:
            sys.stdout.write(text)
            continue
        try:
            item.file.write_text(text)
        except OSError as error:
            print(f"opcheck: cannot write {item.file} ({error.strerror}); here it is instead", file=sys.stderr)
            sys.stdout.write(text)
    sys.stdout.flush()


def rendered(report: AuditReport, name: str, verbosity: int = 0) -> str:
    """Return the report in a format."""
    if name == "json":
        from opcheck.render import json

        return json.render(report)
    from opcheck.render import text

    return text.render(report, verbosity=verbosity)
