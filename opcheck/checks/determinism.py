"""Equal bits from equal inputs, forward and every gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.finding import Finding
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compare, Compared, Crashed, Digests, Outcome, Repeat, Returned, Trial
from opcheck.core.policy import limit
from opcheck.core.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class DeterminismLimits:
    """Limits of `determinism`."""

    runs: int = limit(10, "Runs of the representative case of each dtype.", loose="lower")
    runs_elsewhere: int = limit(2, "Runs of every other case.", loose="lower")


class Determinism:
    """The law of determinism."""

    name: ClassVar[str] = "determinism"
    law: ClassVar[str] = "Every run on the same inputs gives the same bits, in the outputs and in every gradient."
    requires: ClassVar[frozenset[str]] = frozenset({"structure"})
    limits: ClassVar[type] = DeterminismLimits

    def applies(self, subject: Subject) -> str:
        contract = subject.contract
        if contract.random:
            return "the op is declared random"
        if not contract.deterministic_forward and not contract.deterministic_backward:
            return "forward and backward are declared nondeterministic"
        if subject.level == "quick" and not subject.representative:
            return "only the representative cases repeat at the quick level"
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        if compared(seen) is None:
            return (Compare(),)
        return (_repeat(subject, limits),)

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        trial = _repeat(subject, limits)
        lost = broken(seen, trial)
        if lost is not None:
            found = self._finding("the case", Verdict.FAIL, f"a repeated run did not come back: {lost}")
            return (replace(found, place=lost.where),)
        repeats = answered(seen, trial)
        if evidence is None or not isinstance(repeats, Digests):
            return ()
        total = len(repeats.runs) + 1
        findings = []
        for item in evidence.tensors:
            if not _promised(subject, item):
                continue
            others = [dict(run).get(item.tensor, "") for run in repeats.runs]
            differ = sum(digest != item.digest for digest in others)
            varied = f", {repeats.varied}" if repeats.varied else ""
            detail = f"{total} runs, equal bits{varied}"
            if differ:
                detail = f"{differ} of {total} runs differ in their bits from the first{varied}"
            findings.append(self._finding(item.tensor, Verdict.FAIL if differ else Verdict.PASS, detail))
        return tuple(findings)

    def _finding(self, tensor: str, verdict: Verdict, detail: str) -> Finding:
        hint = "an atomic or race whose order varies, memory read before it is written, or undeclared random numbers"
        looks_like = hint if verdict is Verdict.FAIL else ""
        return Finding(
            check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, looks_like=looks_like
        )

    def controls(self) -> tuple[Control, ...]:
        item = Measured(tensor="grad x", dtype="float32", shape=(3, 129), judged=387, digest="aa")
        first: Seen = {Compare(): Returned(evidence=Compared(tensors=(item,)))}
        equal = Digests(runs=((("grad x", "aa"),),) * 9)
        once = Digests(runs=((("grad x", "aa"),),) * 8 + ((("grad x", "ab"),),))
        rows: tuple[tuple[str, Verdict, Outcome], ...] = (
            ("ten equal runs", Verdict.PASS, Returned(evidence=equal)),
            ("the last of ten runs differs", Verdict.FAIL, Returned(evidence=once)),
            ("a repeat dies", Verdict.FAIL, Crashed(role="target", reason="was killed by SIGSEGV")),
        )
        return tuple(
            Control(name=name, expect=expect, seen={**first, Repeat(count=9): outcome}, subject=example())
            for name, expect, outcome in rows
        )


def _repeat(subject: Subject, limits: LimitsOf) -> Repeat:
    numbers: DeterminismLimits = limits(subject.case.dtypes[0])
    return Repeat(count=(numbers.runs if subject.representative else numbers.runs_elsewhere) - 1)


def _promised(subject: Subject, item: Measured) -> bool:
    gradient = item.tensor.startswith("grad ")
    return subject.contract.deterministic_backward if gradient else subject.contract.deterministic_forward


check = Determinism()
