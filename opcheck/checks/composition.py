"""The op as it is used: compiled, captured, checkpointed, its saved tensors moved away, transformed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.behaviour import judged
from opcheck.checks.gate import GateLimits, sibling_errors
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.behaviour import Behaviour, Different, Problem
from opcheck.core.composition import (
    COMPOSITION,
    Captured,
    Checkpointed,
    Compiled,
    Composed,
    Packed,
    Transformed,
    called,
)
from opcheck.core.finding import Finding
from opcheck.core.measured import Element, Measured
from opcheck.core.outcome import Compare, Compared, Crashed, Outcome, Returned, Trial
from opcheck.core.verdict import Verdict

_OP = "the op"
_HINTS: Mapping[type, str] = {
    Compiled: "a number that the op's body leaves for setup_context or the backward is a constant in the compiled code",
    Checkpointed: "the forward, run a second time, gives something else: it keeps a state between its calls",
    Packed: "the backward takes what it saved to have the strides or the address that it had in the forward",
    Transformed: "a vmap rule or a static setup_context that answers for something else",
    Captured: "a value that was read on the host, or an address, is frozen in the graph",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositionLimits(GateLimits):
    """The gate's limits, for what does not come back with the bits of the ordinary run."""


class Composition:
    """The law of composition."""

    name: ClassVar[str] = COMPOSITION
    law: ClassVar[str] = (
        "Compiled, captured, checkpointed, with its saved tensors moved away or under a transform the op gives what it "
        "gives by itself."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"structure", "numerics"})
    limits: ClassVar[type] = CompositionLimits

    def applies(self, subject: Subject) -> str:
        if subject.level != "full":
            return "an op is put into other surroundings at the level full"
        if not subject.representative:
            return "only the representative case of each dtype is put into other surroundings"
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        return _trials(subject) if evidence.tensors else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        if evidence is None:
            return ()
        return tuple(item for trial in _trials(subject) for item in self._of(trial, subject, evidence, seen, limits))

    def _of(
        self, trial: Composed, subject: Subject, evidence: Compared, seen: Seen, limits: LimitsOf
    ) -> Iterator[Finding]:
        where, lost, answer = called(trial), broken(seen, trial), answered(seen, trial)
        if lost is not None:
            verdict = Verdict.FAIL if lost.role == "target" else Verdict.INCONCLUSIVE
            yield self._finding(_OP, verdict, f"{where} did not come back: {lost}")
        if not isinstance(answer, Behaviour):
            return
        for problem in answer.problems:
            when = f"{where}, {problem.when}" if problem.when else where
            yield self._finding(problem.tensor, Verdict.FAIL, f"{when}: {problem.detail}", _HINTS[type(trial)])
        for item in answer.different:
            errors = item.errors or sibling_errors(seen, evidence, subject.case, item.measured.tensor)
            verdict, detail = judged(item, errors, limits(item.measured.dtype))
            hint = _HINTS[type(trial)] if verdict is Verdict.FAIL else ""
            yield self._finding(item.measured.tensor, verdict, f"{where}, {detail}", hint)
        missing = (*answer.uncovered, *_impossible(subject))
        said = f"{where}: {answer.equal} tensors have the bits of the ordinary run"
        yield self._finding(_OP, Verdict.PASS, "; ".join((said, *answer.notes)), missing=missing)

    def _finding(
        self, tensor: str, verdict: Verdict, detail: str, hint: str = "", missing: tuple[str, ...] = ()
    ) -> Finding:
        return Finding(
            check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, looks_like=hint,
            not_covered=missing,
        )  # fmt: skip

    def controls(self) -> tuple[Control, ...]:
        worst = (Element(index=(0, 1), golden=1.0, reference=1.0001, target=1.5),)

        def item(error: float) -> Different:
            measured = Measured(
                tensor="grad x", dtype="float16", shape=(3, 129), judged=387, scale=1.0, reference_error=1e-4,
                rounding_floor=1e-4, target_error=error, worst=worst,
            )  # fmt: skip
            return Different(when="", measured=measured)

        first: Seen = {Compare(): Returned(evidence=Compared(tensors=(Measured(
            tensor="grad x", dtype="float16", shape=(3, 129), judged=387),)))}  # fmt: skip
        raises = Problem(tensor=_OP, when="", detail="raises: the fake is missing")
        compiled = Compiled(backend="aot_eager")
        rows: tuple[tuple[str, Verdict, Trial, Outcome], ...] = (
            ("equal bits", Verdict.PASS, compiled, Returned(evidence=Behaviour(equal=4))),
            ("other bits, within the gate", Verdict.PASS, compiled, _returned(item(2.9e-4))),
            ("other bits, beyond the gate", Verdict.FAIL, compiled, _returned(item(3.1e-4))),
            ("it does not compile", Verdict.FAIL, compiled, Returned(evidence=Behaviour(problems=(raises,)))),
            ("vmap raises", Verdict.PASS, Transformed(), Returned(evidence=Behaviour(notes=("vmap raises",)))),
            ("recomputed, it is another gradient", Verdict.FAIL, Checkpointed(reentrant=False), _returned(item(0.5))),
            ("it dies", Verdict.FAIL, Packed(), Crashed(role="target", reason="was killed by SIGSEGV")),
        )
        subject = example(dtype="float16", level="full")
        return tuple(
            Control(name=name, expect=expect, seen={**first, trial: outcome}, subject=subject)
            for name, expect, trial, outcome in rows
        )


def _trials(subject: Subject) -> tuple[Composed, ...]:
    """Return what can be tried: torch.compile sees into a callable that is no op, and is not the caller's promise."""
    found: list[Composed] = []
    if subject.registered and subject.fake:
        found += [Compiled(backend="aot_eager"), Compiled(backend="inductor")]
    if not subject.mutated:
        found += [Checkpointed(reentrant=False), Checkpointed(reentrant=True), Packed(), Transformed()]
    if subject.case.backend == "cuda" and not subject.contract.random:
        found.append(Captured())
    return tuple(found)


def _impossible(subject: Subject) -> Iterator[str]:
    if not subject.registered:
        yield "torch.compile: the target is a plain callable, not a torch.library op"
    elif not subject.fake:
        yield "torch.compile: the adopted op has no fake"
    if subject.case.backend != "cuda":
        yield "CUDA graph replay: it needs a GPU"
    elif subject.contract.random:
        yield "CUDA graph replay: a replayed op that is declared random draws other numbers"


def _returned(item: Different) -> Outcome:
    return Returned(evidence=Behaviour(different=(item,)))


check = Composition()
