"""The four answers of an audit, and how they combine."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Verdict(Enum):
    """May this be believed to be right? Ordered from best to worst by `severity`."""

    PASS = "PASS"
    PASS_WITH_LIMITATIONS = "PASS WITH LIMITATIONS"
    INCONCLUSIVE = "INCONCLUSIVE"
    FAIL = "FAIL"

    @property
    def severity(self) -> int:
        """0 for PASS up to 3 for FAIL."""
        return _ORDER.index(self)

    def __str__(self) -> str:
        return self.value


_ORDER = (Verdict.PASS, Verdict.PASS_WITH_LIMITATIONS, Verdict.INCONCLUSIVE, Verdict.FAIL)


def worst(verdicts: Iterable[Verdict], *, empty: Verdict = Verdict.INCONCLUSIVE) -> Verdict:
    """Return the worst verdict; nothing judged is never a success, so `empty` is INCONCLUSIVE unless said otherwise."""
    return max(verdicts, key=lambda verdict: verdict.severity, default=empty)
