"""No sanitizer of GPU code reports an error: of memory, races, uninitialised reads, barriers or configurations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, example
from opcheck.core.finding import Finding
from opcheck.core.outcome import Crashed, Outcome, Returned, Trial
from opcheck.core.sanitizer import SANITIZE, Report, Sanitize, Sanitized
from opcheck.core.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizeLimits:
    """`sanitize` has no limits: a tool reports an error or it does not."""


class Sanitizers:
    """The law of the sanitizers."""

    name: ClassVar[str] = SANITIZE
    law: ClassVar[str] = "A sanitizer under which the kernels run reports no error."
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = SanitizeLimits

    def applies(self, subject: Subject) -> str:
        return "" if subject.sanitizers else "no sanitizer was asked for (--sanitize)"

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        return subject.sanitizers

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        return tuple(item for trial in subject.sanitizers for item in self._of(trial, seen))

    def _of(self, trial: Sanitize, seen: Seen) -> tuple[Finding, ...]:
        lost = broken(seen, trial)
        if lost is not None:
            return (self._finding(trial.tool, Verdict.INCONCLUSIVE, f"the run did not come back: {lost}", lost.where),)
        found = answered(seen, trial)
        if not isinstance(found, Sanitized):
            return ()
        findings = [self._finding(found.tool, _verdict(item), _sentence(item), item.where) for item in found.reports]
        unprinted = found.errors - sum(item.grade == "error" for item in found.reports)
        if found.problem:
            findings.append(self._finding(found.tool, Verdict.INCONCLUSIVE, f"no result: {found.problem}"))
        elif not findings and unprinted > 0:
            findings.append(self._finding(found.tool, Verdict.FAIL, f"{found.errors} errors that it did not print"))
        elif not findings:
            verdict = Verdict.PASS_WITH_LIMITATIONS if found.note else Verdict.PASS
            findings.append(self._finding(found.tool, verdict, found.note or f"no error in {_launches(found)}"))
        return tuple(findings)

    def _finding(self, tool: str, verdict: Verdict, detail: str, place: str = "") -> Finding:
        return Finding(check=self.name, tensor=tool, verdict=verdict, law=self.law, detail=detail, place=place)

    def controls(self) -> tuple[Control, ...]:
        write = Report(kind="Invalid __global__ write of size 4 bytes", kernel="_kernel", where="kernel.py:9", size=4)
        race = Report(kind="Race between a write and a read access", grade="warning", kernel="_kernel")
        clean = Sanitized(tool="memcheck", launches={"_kernel": 2})
        rows: tuple[tuple[str, Verdict, Outcome], ...] = (
            ("no error", Verdict.PASS, Returned(evidence=clean)),
            ("one error", Verdict.FAIL, Returned(evidence=replace(clean, reports=(write,), errors=1))),
            ("an error is counted and not printed", Verdict.FAIL, Returned(evidence=replace(clean, errors=1))),
            ("a warning", Verdict.PASS_WITH_LIMITATIONS, Returned(evidence=replace(clean, reports=(race,)))),
            ("the tool breaks", Verdict.INCONCLUSIVE, Returned(evidence=replace(clean, problem="no summary"))),
            ("nothing to compare", Verdict.PASS_WITH_LIMITATIONS, Returned(evidence=replace(clean, note="one config"))),
            ("its process dies", Verdict.INCONCLUSIVE, Crashed(role="target", reason="was killed by SIGKILL")),
        )
        trial = Sanitize(tool="memcheck")
        subject = replace(example(), sanitizers=(trial,))
        return tuple(
            Control(name=name, expect=expect, seen={trial: outcome}, subject=subject) for name, expect, outcome in rows
        )


def _verdict(item: Report) -> Verdict:
    return Verdict.FAIL if item.grade == "error" else Verdict.PASS_WITH_LIMITATIONS


def _sentence(item: Report) -> str:
    place = ", ".join(filter(None, (item.kernel, item.where)))
    who = f"thread {list(item.thread)} of block {list(item.block)}" if item.thread and item.block else ""
    address = " ".join(filter(None, (f"address {item.address}" if item.address else "", item.near)))
    parts = (f"{item.kind}{f' in {place}' if place else ''}", item.other, who, address)
    more = f"; {item.count} such reports" if item.count > 1 else ""
    return f"{'; '.join(filter(None, parts))}{more}"


def _launches(found: Sanitized) -> str:
    if not found.launches:
        return "the run, which launched no Triton kernel; other kernels are not counted"
    return f"launches of {', '.join(f'{name} x {count}' for name, count in found.launches.items())}"


check = Sanitizers()
