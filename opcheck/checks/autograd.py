"""The contract with autograd: subsets of gradients, two backwards, double backward, autocast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.behaviour import judged
from opcheck.checks.gate import GateLimits, sibling_errors
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.behaviour import Autocast, Backwards, Behaviour, Different, DoubleBackward, Problem
from opcheck.core.finding import Finding
from opcheck.core.measured import Element, Measured
from opcheck.core.outcome import Compare, Compared, OracleError, Outcome, Raised, Returned, Trial
from opcheck.core.verdict import Verdict

ALL = "the gradients"  # the tensor of a finding about all of them
_AUTOCASTS = (Autocast(dtype="bfloat16"), Autocast(dtype="float16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AutogradLimits(GateLimits):
    """The gate's limits, for what does not come back with the bits of the ordinary run."""


class Autograd:
    """The law of autograd."""

    name: ClassVar[str] = "autograd"
    law: ClassVar[str] = (
        "Gradients do not depend on which inputs require one or on how often the backward runs; double backward and "
        "autocast are right or raise."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"structure", "numerics"})
    limits: ClassVar[type] = AutogradLimits

    def applies(self, subject: Subject) -> str:
        contract = subject.contract
        if subject.mutated:
            return "the op writes into its arguments: it has no backward"
        if contract.random:
            return "the op is declared random"
        if not subject.representative:
            return "only the representative case of each dtype goes through autograd's other ways"
        if subject.level == "quick" and subject.case.dtype != contract.dtypes[0]:
            return "only the first element type at the quick level"
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        if not any(item.tensor.startswith("grad ") for item in evidence.tensors):
            return ()
        return _trials(subject)

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        if evidence is None:
            return ()
        findings: list[Finding] = []
        notes: list[str] = []
        equal, ran = 0, False
        for trial in _trials(subject):
            lost = broken(seen, trial)
            if lost is not None:
                findings.append(self._lost(trial, lost))
            answer = answered(seen, trial)
            if not isinstance(answer, Behaviour):
                continue
            ran = True
            equal += answer.equal
            notes += answer.notes
            findings += [self._problem(item) for item in answer.problems]
            findings += self._different(subject, answer, evidence, seen, limits)
        if ran:
            detail = "; ".join((f"{equal} tensors have the bits of the ordinary run", *dict.fromkeys(notes)))
            findings.append(self._finding(ALL, Verdict.PASS, detail))
        return tuple(findings)

    def _different(
        self, subject: Subject, answer: Behaviour, evidence: Compared, seen: Seen, limits: LimitsOf
    ) -> Iterator[Finding]:
        for item in answer.different:
            measured = item.measured
            errors = item.errors or sibling_errors(seen, evidence, subject.case, measured.tensor)
            yield self._judge(item, errors, limits(measured.dtype))

    def _judge(self, item: Different, errors: OracleError | None, limits: GateLimits) -> Finding:
        verdict, detail = judged(item, errors, limits)
        tensor = item.measured.tensor.rpartition(" of ")[2]
        return self._finding(tensor, verdict, detail, _hint(item.when) if verdict is Verdict.FAIL else "")

    def _problem(self, item: Problem) -> Finding:
        return self._finding(item.tensor, Verdict.FAIL, f"{item.when}: {item.detail}", _hint(item.when))

    def _lost(self, trial: Trial, lost: Outcome) -> Finding:
        role = "target" if isinstance(lost, Returned) else lost.role
        verdict = Verdict.FAIL if role == "target" else Verdict.INCONCLUSIVE
        place = "" if isinstance(lost, Returned) else lost.where
        return self._finding(ALL, verdict, f"{_called(trial)} did not come back: {lost}", place=place)

    def _finding(self, tensor: str, verdict: Verdict, detail: str, hint: str = "", place: str = "") -> Finding:
        return Finding(
            check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, looks_like=hint, place=place
        )

    def controls(self) -> tuple[Control, ...]:
        worst = (Element(index=(0, 1), golden=1.0, reference=1.0001, target=1.5),)

        def item(error: float) -> Different:
            measured = Measured(
                tensor="grad x", dtype="float16", shape=(3, 129), judged=387, scale=1.0, reference_error=1e-4,
                rounding_floor=1e-4, target_error=error, worst=worst,
            )  # fmt: skip
            return Different(when="only x requires a gradient", measured=measured)

        gradient = Measured(tensor="grad x", dtype="float16", shape=(3, 129), judged=387)
        first: Seen = {Compare(): Returned(evidence=Compared(tensors=(gradient,)))}
        twice = Problem(tensor="grad x", when="a second backward through one graph", detail="its bits differ")
        raised = Raised(role="target", phase="backward", error="RuntimeError", message="no")
        rows: tuple[tuple[str, Verdict, Trial, Outcome], ...] = (
            ("equal bits", Verdict.PASS, Backwards(), Returned(evidence=Behaviour(equal=4))),
            ("other bits, within the gate", Verdict.PASS, Backwards(), _returned(item(2.9e-4))),
            ("other bits, beyond the gate", Verdict.FAIL, Backwards(), _returned(item(3.1e-4))),
            ("the second backward differs", Verdict.FAIL, Backwards(), Returned(evidence=Behaviour(problems=(twice,)))),
            ("the trial dies", Verdict.FAIL, Backwards(), raised),
            (
                "double backward raises",
                Verdict.PASS,
                DoubleBackward(),
                Returned(evidence=Behaviour(notes=("double backward raises",))),
            ),
            ("a wrong second derivative", Verdict.FAIL, DoubleBackward(), _returned(item(0.5))),
        )
        return tuple(
            Control(name=name, expect=expect, seen={**first, trial: outcome}, subject=example(dtype="float16"))
            for name, expect, trial, outcome in rows
        )


def _trials(subject: Subject) -> tuple[Trial, ...]:
    if subject.level == "quick":
        return (Backwards(),)
    autocasts = _AUTOCASTS if subject.case.dtype == "float32" else ()
    return (Backwards(), DoubleBackward(), *autocasts)


def _returned(item: Different) -> Outcome:
    return Returned(evidence=Behaviour(different=(item,)))


def _called(trial: Trial) -> str:
    if isinstance(trial, Autocast):
        return f"autocast to {trial.dtype}"
    return "double backward" if isinstance(trial, DoubleBackward) else "a repeated backward"


def _hint(when: str) -> str:
    if when.startswith("double"):
        return "the backward uses what it kept on ctx without its history: decorate it with once_differentiable"
    if when.startswith("autocast"):
        return "an operation inside of the op changes its element type under autocast: cast to the inputs' own"
    if when.startswith("only"):
        return "the backward takes a shortcut where an input needs no gradient: ctx.needs_input_grad misread"
    return "the backward changes what it saved"


check = Autograd()
