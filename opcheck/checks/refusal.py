"""What the contract forbids raises: no crash, and no answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, example
from opcheck.core.behaviour import REFUSAL, Refuse, Refused
from opcheck.core.finding import Finding
from opcheck.core.outcome import Crashed, Outcome, Returned, Trial
from opcheck.core.outside import outside
from opcheck.core.policy import Unsupported
from opcheck.core.verdict import Verdict

UNCHECKED = (
    "no check of the arguments before the launch; if the call is meant to work, let registry.toml promise it (empty, "
    "contiguous, unsupported)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalLimits:
    """`refusal` has no limits: the op raises or it does not."""


class Refusal:
    """The law of refusal."""

    name: ClassVar[str] = REFUSAL
    law: ClassVar[str] = "A call outside of the contract raises a Python exception: it neither crashes nor answers."
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = RefusalLimits

    def applies(self, subject: Subject) -> str:
        return "" if outside(subject.contract, subject.case) else "the case is inside of the contract"

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        return (Refuse(),)

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        why = outside(subject.contract, subject.case)
        lost = broken(seen, Refuse())
        if lost is not None:
            found = self._finding(Verdict.FAIL, "; ".join(filter(None, (why, str(lost)))))
            return (replace(found, place=lost.where),)
        evidence = answered(seen, Refuse())
        if not isinstance(evidence, Refused):
            return ()
        if evidence.vacuous:
            return (self._finding(Verdict.PASS_WITH_LIMITATIONS, f"{why}; not tried: {evidence.vacuous}"),)
        if evidence.error:
            return (self._finding(Verdict.PASS, evidence.error),)
        return (self._finding(Verdict.FAIL, f"{why}; the target returned {evidence.returned} instead of raising"),)

    def _finding(self, verdict: Verdict, detail: str) -> Finding:
        hint = UNCHECKED if verdict is Verdict.FAIL else ""
        return Finding(
            check=self.name, tensor="the case", verdict=verdict, law=self.law, detail=detail, looks_like=hint
        )

    def controls(self) -> tuple[Control, ...]:
        inside = example(dtype="float64")
        refused = (Unsupported(dtype="float64", reason="sums are float32"),)
        subject = replace(inside, contract=replace(inside.contract, dtypes=("float32",), unsupported=refused))
        rows: tuple[tuple[str, Verdict, Outcome], ...] = (
            ("it raises", Verdict.PASS, Returned(evidence=Refused(error="target raised ValueError: float64"))),
            ("it answers", Verdict.FAIL, Returned(evidence=Refused(returned="out float64 [3, 129]"))),
            ("it dies", Verdict.FAIL, Crashed(role="target", reason="was killed by SIGSEGV")),
            ("it cannot be drawn", Verdict.PASS_WITH_LIMITATIONS, Returned(evidence=Refused(vacuous="samples raises"))),
        )
        return tuple(
            Control(name=name, expect=expect, seen={Refuse(): outcome}, subject=subject)
            for name, expect, outcome in rows
        )


check = Refusal()
