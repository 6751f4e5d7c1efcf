"""The overview: ops down, checks across, and in each place the worst that a check says of an op."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opcheck.core.report import OpReport, verdict_of
from opcheck.core.verdict import Verdict, worst

NOT_APPLICABLE = "not applicable"
NOT_RUN = "not run"


def checks_of(ops: Iterable[OpReport]) -> tuple[str, ...]:
    """Return the checks that say something of some op, by name."""
    return tuple(sorted({item.check for op in ops for case in op.cases for item in case.findings}))


def marks(op: OpReport, checks: Sequence[str]) -> list[tuple[str, Verdict | None, str]]:
    """Return for each check its verdict over all cases; where it has none, why."""
    found: dict[str, list[Verdict]] = {}
    skipped: dict[str, str] = {}
    for case in op.cases:
        skipped |= case.skipped
        for item in case.findings:
            found.setdefault(item.check, []).append(verdict_of((item,)))
    return [
        (name, worst(found[name]), str(worst(found[name]))) if name in found else (name, None, _why(skipped.get(name)))
        for name in checks
    ]


def _why(reason: str | None) -> str:
    return NOT_RUN if reason is None else f"{NOT_APPLICABLE}: {reason}"
