"""What the gate says, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tabulate import tabulate

from opcheck.core.decision import Decision, Point
from opcheck.core.gate import ExitStatus
from opcheck.core.report import to_json

SCHEMA = 1


def table(decision: Decision, *, explain: bool) -> str:
    """Return the decision as text: the evidence, each point that closes it, and last the exit status.

    Args:
        explain: Whether to say of each point what would open it.
    """
    return "".join(f"{line}\n" for line in _lines(decision, explain))


def as_json(decision: Decision) -> str:
    """Return the decision as one JSON object."""
    values = to_json(decision) | {"schema": SCHEMA, "open": decision.exit_status == 0}
    return json.dumps(values, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _lines(decision: Decision, explain: bool) -> Iterator[str]:
    yield f"{decision.head} into {decision.base}"
    if decision.proofs:
        rows = [
            (item.op, item.backend, item.verdict, item.level, item.cases or "", item.state, item.finished)
            for item in decision.proofs
        ]
        yield tabulate(rows, headers=("Op", "Backend", "Verdict", "Level", "Cases", "Evidence", "Of"))
    for note in decision.notes:
        yield f"note    {note}"
    for point in decision.acknowledged:
        yield f"changed {point.sentence}: {point.acknowledged}"
    for point in decision.points:
        yield from _closed(point, explain)
    hint = "; --explain says what opens it" if decision.points and not explain else ""
    yield f"{_summary(decision)} (exit {int(decision.exit_status)}){hint}"


def _closed(point: Point, explain: bool) -> Iterator[str]:
    yield f"CLOSED  {point.rule}: {point.sentence}"
    if explain:
        yield f"        to open it: {point.opens}"


def _summary(decision: Decision) -> str:
    match decision.exit_status:
        case ExitStatus.OK:
            return "may merge"
        case ExitStatus.NOTHING:
            return "nothing was audited"
    count = len(decision.points)
    return f"{count} {'point closes' if count == 1 else 'points close'} the gate"
