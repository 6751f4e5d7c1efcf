"""From an op's finished cases to its report: limitations, what was not covered, stages, and what nothing proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opcheck.core.case import Case
from opcheck.core.cases import Plan, coverage
from opcheck.core.memory import MEMORY, NOTHING
from opcheck.core.policy import Contract
from opcheck.core.power import unproven
from opcheck.core.report import CaseReport, OpReport
from opcheck.core.stages import stages
from opcheck.core.verdict import Verdict, worst


def op_report(
    contract: Contract,
    plan: Plan,
    cases: Sequence[CaseReport],
    *,
    about: Mapping[str, Any],
    device: str,
    whole: bool,
) -> OpReport:
    """Return the report of one op.

    Args:
        plan: What was to run.
        cases: What was finished, in any order.
        about: What its registration says: its place, and whether golden is the promoted reference.
        device: What it ran on, in words.
        whole: Whether nothing was left out on purpose, so that a tensor that no case can judge counts.
    """
    order = {item.case.id: at for at, item in enumerate(plan.cases)}
    ordered = tuple(sorted(cases, key=lambda case: order.get(case.id, len(order))))
    limitations = list(dict.fromkeys(_limitations(ordered)))
    if about["promoted"]:
        limitations.append("golden is the reference promoted to float64: it shares any mistake of the formula")
    seen = [item.detail for case in ordered for item in case.findings if item.check == MEMORY]
    if seen and all(detail.startswith(NOTHING) for detail in seen):
        limitations.append(f"{MEMORY}: {seen[0].partition('; ')[0]}, in any case")
    problems = tuple(unproven(ordered)) if whole else ()
    missing = [*about["not_covered"], *plan.not_covered]
    missing += dict.fromkeys(text for case in ordered for item in case.findings for text in item.not_covered)
    if unfinished := len(plan.cases) - len(ordered):
        missing.append(f"{unfinished} planned cases did not run")
    if silent := [case for case in ordered if not case.findings]:
        missing.append(f"{len(silent)} cases gave the checks nothing to judge, such as {silent[0].id}")
    return OpReport(
        op=contract.name,
        verdict=worst([*(case.verdict for case in ordered), *(Verdict.INCONCLUSIVE for _ in problems)]),
        backend=device,
        cases=ordered,
        limitations=tuple(limitations),
        not_covered=tuple(missing),
        stages=stages(contract, ordered),
        formula=contract.formula,
        kind=contract.kind,
        place=about["place"],
        problems=problems,
        coverage=coverage(plan, (Case.parse(case.id) for case in ordered)),
    )


def _limitations(cases: Sequence[CaseReport]) -> Iterator[str]:
    for case in cases:
        for item in case.findings:
            if item.waived:
                yield f"{item.check} of {item.tensor} is waived: {item.waived}"
            elif item.verdict is Verdict.PASS_WITH_LIMITATIONS:
                parsed = Case.parse(case.id)
                yield f"{item.tensor} ({parsed.dtype}, {parsed.values}): {item.detail}"
