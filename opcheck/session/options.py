"""What to audit and how, and who is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from opcheck.core.policy import Level
from opcheck.core.report import CaseReport


class Progress(Protocol):
    """What a session tells while it runs."""

    def planned(self, total: int) -> None: ...
    def finished(self, case: CaseReport) -> None: ...
    def close(self) -> None: ...


class Silent:
    """Tell nothing."""

    def planned(self, total: int) -> None: ...
    def finished(self, case: CaseReport) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to audit, and how; the fields are the command line's flags."""

    ops: tuple[str, ...] = ()
    registry: Path | None = None
    level: Level = "standard"
    backend: str = "auto"
    seed: int = 0
    checks: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    keyword: str = ""
    workers: int = 0
    timeout: float = 60.0
    exitfirst: bool = False
    budget: float | None = None
    coverage: bool = False
    sanitize: tuple[str, ...] = ()
    plugins: bool = True
