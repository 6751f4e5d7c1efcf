"""Reports of cases that nobody could judge, through no fault of the op's that is known."""

from __future__ import annotations

import traceback

from opcheck.core.finding import Finding
from opcheck.core.gate import MACHINE, OURS
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict

LONGEST = 400  # characters of what a device says


def spoilt(case_id: str, error: Exception) -> CaseReport:
    """Report a case in which a kernel left the device unusable, but in no run of a role: those are waited for."""
    return _unjudged(case_id, MACHINE, f"a kernel left the device unusable, and whose is not known: {_said(error)}")


def out_of_memory(case_id: str, error: Exception) -> CaseReport:
    """Report a case for whose judging there is not the memory, though no other worker has any of it."""
    why = "there is not the memory to judge it, with no other worker beside it; free some, or audit where there is more"
    return _unjudged(case_id, MACHINE, f"{why}: {_said(error)}")


def broke(case_id: str, error: Exception) -> CaseReport:
    """Report a case at which opcheck itself broke: never the kernel's fault, never a success."""
    where = "".join(traceback.format_exception(error)[-3:]).strip()
    return _unjudged(
        case_id, OURS, f"opcheck itself broke: {type(error).__name__}: {error}; this is a bug of opcheck; {where}"
    )


def _unjudged(case_id: str, check: str, detail: str) -> CaseReport:
    finding = Finding(
        check=check,
        tensor="the case",
        verdict=Verdict.INCONCLUSIVE,
        law="opcheck comes to a verdict on every case.",
        detail=detail,
    )
    return CaseReport(id=case_id, verdict=Verdict.INCONCLUSIVE, findings=(finding,))


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST]
