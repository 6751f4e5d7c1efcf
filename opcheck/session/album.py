"""Keep the pictures that are told: of each kind of failure one, and of an op a few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from opcheck.core.finding import Finding
from opcheck.core.pictures import Picture
from opcheck.core.report import CaseReport
from opcheck.core.told import Kind, Rank, kind, rank

MOST_KINDS = 4  # of an op, whose failures have pictures


@dataclass(slots=True)
class Album:
    """The pictures of one op.

    Args:
        order: The ids of its cases as they were planned: where two say as much, the first is told.
    """

    order: Sequence[str]
    _places: dict[str, int] = field(init=False)
    _kept: dict[Kind, tuple[tuple[Rank, int], str, tuple[Picture, ...]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._places = {case: at for at, case in enumerate(self.order)}

    def take(self, case: CaseReport) -> CaseReport:
        """Keep of a case the pictures that are told on it as far as is known, and return the case without any."""
        if not any(item.pictures for item in case.findings):
            return case
        for item in case.findings:
            if item.waived or not item.pictures:
                continue
            place = rank(case, item), self._places.get(case.id, len(self._places))
            before = self._kept.get(kind(item))
            if before is None or place < before[0]:
                self._kept[kind(item)] = (place, case.id, item.pictures)
        return replace(case, findings=tuple(replace(item, pictures=()) for item in case.findings))

    def back(self, cases: Iterable[CaseReport]) -> list[CaseReport]:
        """Give the findings of the worst kinds their pictures back."""
        worst = sorted(self._kept, key=lambda key: self._kept[key][0])[:MOST_KINDS]
        wanted = {(self._kept[key][1], key): self._kept[key][2] for key in worst}
        named = {case for case, _ in wanted}
        return [_given(case, wanted) if case.id in named else case for case in cases]


def _given(case: CaseReport, wanted: dict[tuple[str, Kind], tuple[Picture, ...]]) -> CaseReport:
    def given(item: Finding) -> Finding:
        return replace(item, pictures=() if item.waived else wanted.get((case.id, kind(item)), ()))

    return replace(case, findings=tuple(given(item) for item in case.findings))
