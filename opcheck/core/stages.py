"""The five stages of the protocol, read off the findings of an op."""

from __future__ import annotations

from collections.abc import Iterable

from opcheck.core.case import Case
from opcheck.core.composition import COMPOSITION
from opcheck.core.draws import RANDOMNESS
from opcheck.core.policy import Contract
from opcheck.core.report import CaseReport, StageState
from opcheck.core.stress import STRESS
from opcheck.core.verdict import Verdict

_REPEATING = ("determinism", RANDOMNESS)  # an op that draws random numbers repeats them under one seed
_STRESSING = (STRESS, COMPOSITION)
_GOOD = (Verdict.PASS, Verdict.PASS_WITH_LIMITATIONS)


def stages(contract: Contract, cases: Iterable[CaseReport]) -> dict[str, StageState]:
    """Say how far an op has come: basic correctness, dtype sensitivity, edge cases, determinism, stress.

    Stress holds only where its own checks ran; nothing counts as held because it was not tried.
    """
    reports = [(Case.parse(case.id), case) for case in cases]
    verdicts = {
        "basic correctness": [_numeric(c) for case, c in reports if _basic(case, contract)],
        "dtype sensitivity": [_numeric(c) for _, c in reports],
        "edge cases": [_numeric(c) for case, c in reports if case.values != "normal" or _small(case)],
        "determinism": [f.verdict for _, c in reports for f in c.findings if f.check in _REPEATING],
        "stress": [f.verdict for _, c in reports for f in c.findings if f.check in _STRESSING],
    }  # fmt: skip
    found = {name: _state(items) for name, items in verdicts.items()}
    missing = set(contract.dtypes) - {dtype for case, _ in reports for dtype in case.dtypes}
    if missing and found["dtype sensitivity"] == "holds":
        found["dtype sensitivity"] = "not covered"
    return found


def _basic(case: Case, contract: Contract) -> bool:
    return case.values == "normal" and case.dtype == contract.dtypes[0]


def _small(case: Case) -> bool:
    return 1 in case.dims.values() or 0 in case.dims.values()


def _numeric(case: CaseReport) -> Verdict:
    found = [item.verdict for item in case.findings if item.check != "determinism" and not item.waived]
    return max(found, key=lambda verdict: verdict.severity, default=Verdict.INCONCLUSIVE)


def _state(verdicts: list[Verdict]) -> StageState:
    if not verdicts:
        return "not covered"
    if Verdict.FAIL in verdicts:
        return "fails"
    return "holds" if all(verdict in _GOOD for verdict in verdicts) else "inconclusive"
