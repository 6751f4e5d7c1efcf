"""Which failures are told, on which case, and in which order: the same in every form of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict
from opcheck.errors import BadCase

FEWEST_ELEMENTS = 32  # of a case, for a place in it to mean anything

Kind = tuple[str, ...]
Rank = tuple[int, bool, bool, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A finding on the case that shows it best, and on how many more cases there is the same one."""

    case: CaseReport
    finding: Finding
    more: int = 0


def told(
    cases: Sequence[CaseReport], *, waived: bool = False, least: Verdict = Verdict.INCONCLUSIVE
) -> tuple[Told, ...]:
    """Return what is wrong with an op, worst first; the same finding on several cases once, on its smallest case."""
    pairs = [(case, item) for case in cases for item in case.findings
             if item.verdict.severity >= least.severity and bool(item.waived) is waived]  # fmt: skip
    found: dict[Kind, Told] = {}
    for case, item in sorted(pairs, key=lambda pair: rank(*pair)):
        before = found.get(kind(item))
        found[kind(item)] = replace(before, more=before.more + 1) if before else Told(case=case, finding=item)
    return tuple(found.values())


def remarked(cases: Sequence[CaseReport]) -> tuple[Told, ...]:
    """Return every kind of limitation that pictures show."""
    found = told(cases, least=Verdict.PASS_WITH_LIMITATIONS)
    return tuple(item for item in found if item.finding.pictures
                 and item.finding.verdict is Verdict.PASS_WITH_LIMITATIONS)  # fmt: skip


def kind(item: Finding) -> Kind:
    """Return what is the same of findings that are told once."""
    law = item.law if item.check == "library" else ""
    return item.check, item.tensor, law, str(item.verdict), item.place


def rank(case: CaseReport, item: Finding) -> Rank:
    """Return by what failures are ordered: the worst first, and of one kind the one that says most.

    A case whose errors form a pattern says more than a smaller one without, and one element forms none.
    """
    elements = size(case.id)
    return -item.verdict.severity, not item.looks_like, elements < FEWEST_ELEMENTS, elements


def size(case_id: str) -> int:
    """Return how many elements a case's dimensions have, 1 where it names none or cannot be read."""
    try:
        return math.prod(Case.parse(case_id).dims.values())
    except (BadCase, ValueError):
        return 1
