"""Which failures are told, on which case, and in which order: the same in every form of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict

FEWEST_ELEMENTS = 32  # of a case, for a place in it to mean anything

Kind = tuple[str, str]
Rank = tuple[int, bool, bool, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One kind of failure, on the case on which it is told, and in how many more cases it is found."""

    case: CaseReport
    finding: Finding
    more: int


def told(cases: Sequence[CaseReport]) -> tuple[Told, ...]:
    """Return every kind of failure, the worst first."""
    return _told(cases, Verdict.INCONCLUSIVE)


def remarked(cases: Sequence[CaseReport]) -> tuple[Told, ...]:
    """Return every kind of limitation that pictures show."""
    found = _told(cases, Verdict.PASS_WITH_LIMITATIONS)
    return tuple(item for item in found if item.finding.verdict is Verdict.PASS_WITH_LIMITATIONS
                 and item.finding.pictures)  # fmt: skip


def kind(item: Finding) -> Kind:
    """Return what is the same of findings that are told once."""
    return item.check, f"{item.tensor} {item.law if item.check == 'library' else ''} {item.verdict}"


def rank(case: CaseReport, item: Finding) -> Rank:
    """Return by what failures are ordered: the worst first, and of one kind the one that says most.

    A case whose errors form a pattern says more than a smaller one without, and one element forms none.
    """
    size = math.prod(Case.parse(case.id).dims.values())
    return -item.verdict.severity, not item.looks_like, size < FEWEST_ELEMENTS, size


def _told(cases: Sequence[CaseReport], least: Verdict) -> tuple[Told, ...]:
    pairs = [(rank(case, item), case, item) for case in cases for item in case.findings
             if item.verdict.severity >= least.severity and not item.waived]  # fmt: skip
    pairs.sort(key=lambda pair: pair[0])
    found: dict[Kind, Told] = {}
    for _, case, item in pairs:
        before = found.get(kind(item))
        more = before.more + 1 if before else 0
        found[kind(item)] = Told(case=before.case if before else case, finding=before.finding if before else item,
                                 more=more)  # fmt: skip
    return tuple(found.values())
