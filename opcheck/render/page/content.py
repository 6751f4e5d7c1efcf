"""What stands on the page: from the report to the few values that the template lays out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opcheck.core.brief import worst_rows
from opcheck.core.following import again
from opcheck.core.kernel_coverage import KernelCoverage
from opcheck.core.power import smallest_caught
from opcheck.core.report import STAGES, AuditReport, CaseReport, OpReport
from opcheck.core.told import Told, remarked, told
from opcheck.core.verdict import Verdict
from opcheck.errors import BadCase
from opcheck.render import figures as drawn
from opcheck.render.page.matrix import checks_of, marks
from opcheck.render.remarks import summary
from opcheck.render.text import HEADERS, described, figures

MOST_TOLD = 12  # kinds of failure in full for each op; the rest are counted
MOST_LISTED = 40  # limitations and gaps of an op, too

#: Of each verdict a letterlike mark, so that no meaning hangs on a colour, and the name of its style.
MARKS = {
    Verdict.PASS: ("✓", "pass"),
    Verdict.PASS_WITH_LIMITATIONS: ("◐", "limited"),
    Verdict.INCONCLUSIVE: ("?", "inconclusive"),
    Verdict.FAIL: ("✗", "fail"),
}
STATES = {"holds": Verdict.PASS, "fails": Verdict.FAIL, "inconclusive": Verdict.INCONCLUSIVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A picture on the page: its SVG, and what it shows in words."""

    svg: str
    caption: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A failure or a limitation in full."""

    told: Told
    again: str
    repro: str
    pictures: tuple[Drawn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One op."""

    op: OpReport
    anchor: str
    rows: list[tuple[tuple[str, ...], Verdict]]
    failures: tuple[Card, ...]
    unshown: int
    remarks: tuple[Card, ...]
    tested: str
    catches: str
    stages: list[tuple[str, str, Verdict | None]]
    kernels: list[KernelCoverage]
    words: str


def content(report: AuditReport, registry: str) -> dict[str, Any]:
    """Return what the template is given."""
    checks = checks_of(report.ops)
    sections = [_section(op, f"op-{at + 1}", report, registry) for at, op in enumerate(report.ops)]
    tally = Counter(op.verdict for op in report.ops)
    return {
        "report": report,
        "summary": summary(report),
        "sections": sections,
        "checks": checks,
        "matrix": [(section, marks(section.op, checks)) for section in sections],
        "tally": [(verdict, tally[verdict]) for verdict in reversed(Verdict) if tally[verdict]],
        "marks": MARKS,
        "verdicts": list(Verdict),
        "headers": HEADERS,
        "device": ", ".join(dict.fromkeys(op.backend for op in report.ops)),
        "unlaunched": [item for item in report.kernels or () if not item.ops and item.lines],
        "most_listed": MOST_LISTED,
        "tail": lambda case, op: case.id.removeprefix(op.op),
    }


def _section(op: OpReport, anchor: str, report: AuditReport, registry: str) -> Section:
    kinds, limited = told(op.cases), remarked(op.cases)
    cards = tuple(_card(item, f"{anchor}-{at}", registry) for at, item in enumerate((*kinds[:MOST_TOLD], *limited)))
    shown = len(kinds[:MOST_TOLD])
    return Section(
        op=op, anchor=anchor, failures=cards[:shown], remarks=cards[shown:], unshown=len(kinds) - shown,
        rows=[((f"{row.tensor} ({row.dtype})", *figures(row)), row.verdict) for row in worst_rows(op.cases)],
        tested=_tested(op), catches=_catches(op.cases),
        stages=[(name, state := op.stages.get(name, "not covered"), STATES.get(state)) for name in STAGES],
        kernels=[item for item in report.kernels or () if op.op in item.ops],
        words=" ".join(_words(op)).lower(),
    )  # fmt: skip


def _card(item: Told, salt: str, registry: str) -> Card:
    command = again(item.case.id, item.finding.check, registry)
    where = f"--registry '{registry}' " if registry else ""
    failed = item.finding.verdict is Verdict.FAIL and command
    return Card(
        told=item,
        again=command,
        repro=f"python -m opcheck repro {where}'{item.case.id}'" if failed else "",
        pictures=tuple(
            Drawn(svg=drawn.inline(picture, f"{salt}-{at}"), caption=drawn.caption(picture), kind=picture.kind)
            for at, picture in enumerate(item.finding.pictures)
        ),
    )


def _tested(op: OpReport) -> str:
    try:
        return described(op)
    except (BadCase, ValueError):  # a case from another version, which has no such id
        return f"{len(op.cases)} cases, {op.backend}"


def _catches(cases: Sequence[CaseReport]) -> str:
    caught = smallest_caught(cases)
    if not caught:
        return ""
    name, (error, _) = max(caught.items(), key=lambda item: item[1][0])
    return f"one wrong element of any tensor, from {error:.1e} of the scale on; least of {name}"


def _words(op: OpReport) -> Iterator[str]:
    """Yield what an op is found by, beside its cases."""
    yield from (op.op, op.kind, op.formula, str(op.verdict), op.place)
    yield from dict.fromkeys(item.check for case in op.cases for item in case.findings
                             if item.verdict.severity >= Verdict.INCONCLUSIVE.severity)  # fmt: skip
