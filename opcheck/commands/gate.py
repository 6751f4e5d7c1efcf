"""Decide whether a change may merge: its evidence, and what it promises against what base does.

exit status: 0 may merge; 1 may not; 4 usage or configuration; 5 nothing was audited
"""

from __future__ import annotations

import argparse
import datetime
import re
from collections.abc import Iterable
from pathlib import Path

from opcheck.commands.streams import show
from opcheck.core.age import CALLED, age_of
from opcheck.core.evidence import Line, from_text
from opcheck.declared import find
from opcheck.errors import OpcheckError
from opcheck.merge.decide import Request, decide
from opcheck.render import gate

FORMATS = ("table", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--base", default="", metavar="REF", help="what to merge into (default: origin's, or main)")
    add_evidence(parser)
    parser.add_argument(
        "--base-evidence", type=Path, action="extend", nargs="+", default=[], metavar="FILE",
        help="evidence of base: families of cases that it has and this one lacks close the gate",
    )  # fmt: skip
    parser.add_argument(
        "--require", type=_backend, action="append", default=[], metavar="BACKEND",
        help="a backend that needs evidence beside base's: cpu, cuda, cuda:sm_90 (repeatable)",
    )  # fmt: skip
    parser.add_argument("--max-age", type=_age, metavar="AGE", help="how old evidence may be, such as 14d or 36h")
    parser.add_argument(
        "--accept-oracle", action="append", default=[], metavar="OP",
        help="a reviewer has compared the op's changed oracle with its formula (repeatable)",
    )  # fmt: skip
    parser.add_argument("--explain", action="store_true", help="say of each point what would open it")
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """Declare `--evidence`."""
    parser.add_argument(
        "--evidence", type=Path, action="extend", nargs="+", default=[], metavar="FILE",
        help="evidence files, or folders of them (default: .opcheck/evidence beside registry.toml)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Decide, print, return the exit status."""
    registry = (arguments.registry or find()).resolve()
    decision = decide(
        Request(
            registry=registry,
            lines=lines_of(arguments.evidence or usual(registry)),
            before=lines_of(arguments.base_evidence),
            base=arguments.base,
            require=tuple(arguments.require),
            max_age=arguments.max_age,
            accepted=frozenset(arguments.accept_oracle),
            now=datetime.datetime.now(datetime.UTC),
        )
    )
    as_json = arguments.format == "json"
    show(gate.as_json(decision) if as_json else gate.table(decision, explain=arguments.explain))
    return decision.exit_status


def usual(registry: Path) -> list[Path]:
    """Return the folder where audits leave evidence, where there is one."""
    folder = registry.parent / ".opcheck" / "evidence"
    return [folder] if folder.is_dir() else []


def lines_of(places: Iterable[Path]) -> list[Line]:
    """Read evidence files, and those of folders.

    Raises:
        OpcheckError: One cannot be read, or is not evidence.
    """
    found: list[Line] = []
    for place in places:
        for file in sorted(place.glob("*.jsonl")) if place.is_dir() else (place,):
            try:
                found += from_text(file.read_text(encoding="utf-8"), str(file))
            except FileNotFoundError:
                raise OpcheckError(f"there is no evidence at {file}; `opcheck audit --all` writes it") from None
            except UnicodeDecodeError:
                raise OpcheckError(f"{file} is not UTF-8; evidence is JSON lines, as `opcheck audit` writes") from None
            except ValueError as error:
                raise OpcheckError(f"{error}; delete it, and audit again") from None
    return found


def _backend(text: str) -> str:
    if not re.fullmatch(r"cpu|cuda(:sm_[0-9]+[a-z]?)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} should be cpu, cuda, or an architecture such as cuda:sm_90")
    return text


def _age(text: str) -> datetime.timedelta:
    if (age := age_of(text)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} should be {CALLED}")
    return age
