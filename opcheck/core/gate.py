"""May it ship? Verdicts, waivers and the state of the registry in, an exit status out."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.policy import GatePolicy, Waiver
from opcheck.core.report import CaseReport, OpReport, verdict_of
from opcheck.core.verdict import Verdict, worst

OURS = "opcheck"  # the check of a finding that says that opcheck itself broke
MACHINE = "machine"  # the same where the machine kept a case from being judged: the next audit may be luckier
UNJUDGED = (OURS, MACHINE)  # no check speaks of such a case


class ExitStatus(IntEnum):
    """pytest's numbers."""

    OK = 0
    CLOSED = 1
    INTERRUPTED = 2
    INTERNAL = 3
    USAGE = 4
    NOTHING = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """The gate's answer: the worst verdict, the exit status, and each reason for which the gate is closed."""

    verdict: Verdict
    exit_status: ExitStatus
    problems: tuple[str, ...] = ()


def gate(
    ops: Iterable[OpReport], policy: GatePolicy, *, problems: Iterable[str] = (), complete: bool = True
) -> GateResult:
    """Decide whether the audited ops may ship.

    Args:
        problems: What is wrong with the registry itself; any one of them closes the gate.
        complete: Whether all planned cases ran; an interrupted audit never opens the gate.
    """
    reports = tuple(ops)
    found = tuple(problems)
    verdict = worst(item.verdict for item in reports)
    if any(item.check == OURS for op in reports for case in op.cases for item in case.findings):
        return GateResult(verdict=verdict, exit_status=ExitStatus.INTERNAL, problems=found)
    if not complete:
        return GateResult(verdict=verdict, exit_status=ExitStatus.INTERRUPTED, problems=found)
    # An op without cases is inconclusive, so this is asked before the verdicts are.
    if not found and not any(item.cases for item in reports):
        return GateResult(verdict=verdict, exit_status=ExitStatus.NOTHING)
    if found or any(item.verdict not in policy.accept for item in reports):
        return GateResult(verdict=verdict, exit_status=ExitStatus.CLOSED, problems=found)
    return GateResult(verdict=verdict, exit_status=ExitStatus.OK, problems=found)


def registry_problems(
    declared: Iterable[str], registered: Mapping[str, str], failures: Iterable[str], modules: Iterable[str]
) -> list[str]:
    """Return what is wrong with a registry as a whole, as sentences; any of it closes the gate.

    Args:
        declared: The ops of `registry.toml`.
        registered: Where each op is registered.
        failures: What could not be imported, as sentences.
        modules: The modules that were imported.
    """
    declared = set(declared)
    found = list(failures)
    for name in sorted(registered.keys() - declared):
        found.append(
            f"{name} is registered at {registered[name]} and not declared in registry.toml; `opcheck lint` prints "
            f"its table"
        )
    for name in sorted(declared - registered.keys()):
        found.append(
            f"{name} is declared in registry.toml and not registered by {', '.join(modules)}: "
            f"register it or delete its table"
        )
    return found


def apply_waivers(
    op: str, case: CaseReport, waivers: Iterable[Waiver], today: datetime.date, used: set[Waiver]
) -> CaseReport:
    """Mark the findings that a waiver in force covers, and note in `used` which waivers did."""
    active = [waiver for waiver in waivers if waiver.until >= today]
    if not active:
        return case
    parsed = Case.parse(case.id)
    facts = {"values": parsed.values, "layout": parsed.layout, "variant": parsed.variant, "backend": parsed.backend}

    def marked(item: Finding) -> Finding:
        if item.verdict in (Verdict.PASS, Verdict.PASS_WITH_LIMITATIONS):
            return item
        for waiver in active:
            for dtype in (parsed.dtype, *parsed.dtypes):
                if waiver.covers(op, item.check, {**facts, "dtype": dtype, "tensor": item.tensor}):
                    used.add(waiver)
                    return replace(item, waived=f"{waiver.reason} (until {waiver.until})")
        return item

    findings = tuple(marked(item) for item in case.findings)
    rows = tuple(
        replace(row, verdict=verdict_of(tuple(item for item in findings if item.tensor == row.tensor)))
        for row in case.tensors
    )
    return replace(case, findings=findings, tensors=rows, verdict=verdict_of(findings))


def waiver_problems(waivers: Iterable[Waiver], today: datetime.date, used: set[Waiver], *, whole: bool) -> list[str]:
    """Return a sentence for each waiver that is expired or, after a whole audit, covered nothing."""
    found = []
    for waiver in waivers:
        if waiver.until < today:
            found.append(f"{waiver} has expired: mend the op, or give a new date and reason")
        elif whole and waiver not in used:
            found.append(f"{waiver} covers nothing: delete it")
    return found
