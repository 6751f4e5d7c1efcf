"""What the gate says of a merge: each point that closes it, each that was taken back knowingly, and an exit status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from opcheck.core.gate import ExitStatus

Rule = Literal[
    "verdict", "evidence-missing", "evidence-stale", "evidence-partial", "evidence-old", "no-cases",
    "op-removed", "op-undeclared", "module-broken", "family-removed", "contract-narrowed", "limit-loosened",
    "oracle-changed", "oracle-hidden", "kernel-unregistered", "waiver-expired", "waiver-unused", "waiver-grown",
]  # fmt: skip
NOTHING_RAN: frozenset[Rule] = frozenset({"evidence-missing", "no-cases"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing for which a merge may not go through.

    Attributes:
        rule: Its kind; stable, for machines.
        op: The op that it is about, empty where it is about none alone.
        sentence: What is, and what base has.
        opens: What would open the gate, as an imperative.
        acknowledged: The new reason, or whoever accepted it; then it closes nothing and is told.
    """

    rule: Rule
    sentence: str
    opens: str
    op: str = ""
    acknowledged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The evidence that counts for one op on one required backend.

    Attributes:
        state: Whether it is current, or in a word what it lacks.
    """

    op: str
    backend: str
    state: str
    verdict: str = ""
    level: str = ""
    cases: int = 0
    device: str = ""
    finished: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """May it merge?

    Attributes:
        base: What head was compared with, in words; `commit` is its full name, empty where there is none.
        head: What was judged, in words.
        notes: What a reader should know and what closes nothing.
    """

    base: str
    commit: str
    head: str
    exit_status: ExitStatus
    points: tuple[Point, ...] = ()
    acknowledged: tuple[Point, ...] = ()
    proofs: tuple[Proof, ...] = ()
    notes: tuple[str, ...] = ()


def status_of(points: tuple[Point, ...], *, cases: int) -> ExitStatus:
    """Return the exit status: closed by any point; but where nothing was audited and that is all, that is what it says.

    Args:
        cases: How many cases the evidence that was found counts, current or not.
    """
    if not cases and all(point.rule in NOTHING_RAN for point in points):
        return ExitStatus.NOTHING
    return ExitStatus.CLOSED if points else ExitStatus.OK
