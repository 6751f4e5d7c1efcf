"""What a report has to say against merging, as a flat list, worst first: what every line-based format is made of."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from opcheck.core.following import again
from opcheck.core.report import AuditReport, OpReport
from opcheck.core.told import told
from opcheck.core.verdict import Verdict
from opcheck.render.view import Spot, View, spot

GATE = "gate"  # stands for the check where the registry as a whole is at fault
UNPROVEN = "unproven"  # stands for it where no case can judge a tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing that a reader must look at.

    Attributes:
        op: Empty for the registry as a whole.
        check: `GATE` and `UNPROVEN` where no check says it.
        place: `file:line` as the report has it: the line that the finding is about, else the registration.
        spot: The nearest line that is in the repository.
        case: Id of the case that shows it best, empty where there is none.
        more: How many more cases show the same.
        again: The command line that runs the case again, empty where there is none.
        waived: The reason of the waiver that covers it.
        fingerprint: The same from run to run while the same is wrong, wherever its line moves.
    """

    op: str
    check: str
    tensor: str
    verdict: Verdict
    law: str
    detail: str
    place: str
    spot: Spot
    looks_like: str = ""
    case: str = ""
    more: int = 0
    again: str = ""
    waived: str = ""
    fingerprint: str = ""

    @property
    def title(self) -> str:
        """What is wrong, in a few words."""
        return " ".join(filter(None, (str(self.verdict), self.check, self.op, self.tensor)))

    @property
    def message(self) -> str:
        """All of it, a line each: the law, measured against allowed, what it looks like, how to run it again."""
        return "\n".join(filter(None, (
            self.law, self.detail, f"waived: {self.waived}" if self.waived else "",
            f"looks like: {self.looks_like}" if self.looks_like else "",
            f"in {self.case}{others(self.more)}" if self.case else "", f"again: {self.again}" if self.again else "",
        )))  # fmt: skip


def remarks(report: AuditReport, view: View) -> tuple[Remark, ...]:
    """Return what closes the gate or might, each once: the registry's own faults, failures, doubts, waived failures."""
    found = [_closed(problem, view) for problem in report.problems]
    found += [item for op in report.ops for item in _of(op, view)]
    found.sort(key=lambda item: (bool(item.waived), -item.verdict.severity))
    seen: Counter[str] = Counter()
    return tuple(replace(item, fingerprint=_fingerprint(item, seen)) for item in found)


def summary(report: AuditReport) -> str:
    """Return the last line: how many ops and cases, their verdicts, and whether it may merge."""
    tally = Counter(op.verdict for op in report.ops)
    verdicts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in Verdict if tally[verdict]) or "nothing audited"
    cases = sum(len(op.cases) for op in report.ops)
    ending = "" if report.complete else "; ended early: this is what was finished"
    gate = "may merge" if report.ok else "may not merge"
    audited = f"{counted(len(report.ops), 'op')}, {counted(cases, 'case')}"
    return f"{audited}: {verdicts}; {gate} (exit {report.exit_status}){ending}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def others(more: int) -> str:
    """Return how many more cases there are, empty where there is none."""
    return f" and {counted(more, 'more case')}" if more else ""


def _of(op: OpReport, view: View) -> Iterator[Remark]:
    for item in (*told(op.cases), *told(op.cases, waived=True)):
        found = item.finding
        place, at = _nearest((found.place, op.place), view)
        yield Remark(
            op=op.op, check=found.check, tensor=found.tensor, verdict=found.verdict, law=found.law,
            detail=found.detail, looks_like=found.looks_like, place=place, spot=at, case=item.case.id, more=item.more,
            again=again(item.case.id, found.check, view.registry), waived=found.waived,
        )  # fmt: skip
    for problem in op.problems:
        place, at = _nearest((op.place,), view)
        yield Remark(
            op=op.op, check=UNPROVEN, tensor="", verdict=Verdict.INCONCLUSIVE, law="Some case can judge every tensor.",
            detail=problem, place=place, spot=at,
        )  # fmt: skip


def _closed(problem: str, view: View) -> Remark:
    place, at = _nearest((), view)
    law = "Registrations, contracts and waivers agree."
    return Remark(op="", check=GATE, tensor="", verdict=Verdict.FAIL, law=law, detail=problem, place=place, spot=at)


def _nearest(places: Iterable[str], view: View) -> tuple[str, Spot]:
    """Return the first place that is in the repository; where none is, the first that is known and registry.toml."""
    known = [place for place in places if place]
    for place in known:
        if (at := spot(place, view)) is not None:
            return place, at
    contracts = f"{view.contracts}:1"
    return (known or [contracts])[0], spot(contracts, view) or Spot(file="registry.toml", line=1)


def _fingerprint(item: Remark, seen: Counter[str]) -> str:
    """Digest what is wrong but no line and no figure; a number tells what is wrong twice in the same way apart."""
    law = item.law if item.check == "library" else item.detail if item.check in (GATE, UNPROVEN) else ""
    parts = (item.op, item.check, item.tensor, law, str(item.verdict))
    key = hashlib.blake2b("\0".join(parts).encode(errors="backslashreplace"), digest_size=16).hexdigest()
    seen[key] += 1
    return key if seen[key] == 1 else f"{key}-{seen[key]}"
