"""`lint --tighten`: limits that the evidence says could be tighter, as TOML lines. Nothing is written."""

from __future__ import annotations

import argparse
import datetime
import math

from opcheck.checks import limits_by_check
from opcheck.commands.gate import add_evidence, lines_of, usual
from opcheck.commands.streams import say, show
from opcheck.core.evidence import Evidence
from opcheck.core.gate import ExitStatus
from opcheck.declared import find, policy_of
from opcheck.declared.file import document
from opcheck.merge import evidence
from opcheck.merge.standing import Standing
from opcheck.merge.tighten import ROOM, proposals, told


def add_tighten(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--tighten", action="store_true", help="print limits that the evidence would still pass with, and run nothing"
    )
    add_evidence(parser)
    parser.add_argument(
        "--room", type=_room, default=ROOM, metavar="TIMES",
        help=f"how many times what was measured a tightened limit must allow (default: {ROOM:g})",
    )  # fmt: skip


def tighten(arguments: argparse.Namespace) -> int:
    """Print what could be tighter."""
    path = (arguments.registry or find()).resolve()
    limits, table = limits_by_check(), document(path)
    policy = policy_of(table, limits, path)
    lines = [line for line in lines_of(arguments.evidence or usual(path)) if isinstance(line, Evidence)]
    asked = evidence.Asked(
        ops=policy.ops, stale=Standing.of(path.parent, table), gate=policy.gate, now=datetime.datetime.now(datetime.UTC)
    )
    proven: dict[str, list[Evidence]] = {}
    for op in policy.ops:
        found = [evidence.find(op, backend, lines, asked) for backend in policy.gate.backends]
        for item in found:
            if item.fault is not None:
                say(f"opcheck: nothing is proposed for {item.fault.sentence}")
        if all(item.fault is None for item in found):
            proven[op] = [item.line for item in found if item.line is not None]
    if not proven:
        say("opcheck: no evidence counts; `opcheck audit --all` makes it")
        return ExitStatus.NOTHING
    if text := told(proposals(policy, proven, limits, arguments.room)):
        show(f"{text}\n")
    else:
        say("opcheck: no limit of registry.toml is looser than the evidence needs")
    return ExitStatus.OK


def _room(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 1 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number of 1 or more")
    return number
