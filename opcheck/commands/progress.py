"""Progress on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from opcheck.commands.streams import say
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict
from opcheck.session import Progress, Silent

EVERY = 25  # cases between two plain lines


def progress(*, quiet: bool = False) -> Progress:
    """Return what suits standard error."""
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()


class Bar:
    """tqdm's bar, with the number of failures beside it."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._bad = 0

    def planned(self, total: int) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit="case", file=sys.stderr, leave=False, dynamic_ncols=True)

    def finished(self, case: CaseReport) -> None:
        if case.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE):
            self._bad += 1
            self._bar.set_postfix_str(f"{self._bad} not right", refresh=False)
        self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Lines:
    """A line now and then, for logs; each failing case has one of its own."""

    def __init__(self) -> None:
        self._total = self._done = 0

    def planned(self, total: int) -> None:
        self._total = total

    def finished(self, case: CaseReport) -> None:
        self._done += 1
        if case.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE):
            self._say(f"{case.verdict}  {case.id}")
        elif self._done % EVERY == 0 or self._done == self._total:
            self._say(f"{self._done} of {self._total} cases")

    def close(self) -> None: ...

    def _say(self, text: str) -> None:
        say(text)
