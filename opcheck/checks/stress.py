"""The op in a long run: nothing is kept, nothing drifts, other shapes, streams and devices change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.behaviour import judged
from opcheck.checks.gate import GateLimits, sibling_errors
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.behaviour import Behaviour, Problem
from opcheck.core.finding import Finding
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compare, Compared, Crashed, Outcome, Returned, Trial
from opcheck.core.policy import limit
from opcheck.core.stress import (
    STRESS,
    Counted,
    Endure,
    Endured,
    Growth,
    Large,
    Reshape,
    SecondDevice,
    Streams,
    Stressed,
    label_of,
)
from opcheck.core.verdict import Verdict

_OP = "the op"
_CALLS = 4  # between two counts
# Least sustained growth that counts, for each call: one object, or what a tensor of one element takes of malloc.
_LEAST: dict[Counted, float] = {
    "live tensors": 1.0, "Python objects": 1.0, "bytes of host memory": 256.0, "bytes of device memory": 1.0,
}  # fmt: skip
_BY_SHAPE = ("live tensors", "bytes of device memory")  # kernels compiled for a shape are kept, and are no tensors
_LEAK = "a list, a cache keyed by an address, or a cycle that keeps what one call made"
_STATE = "a state that one call leaves for the next: a cache keyed too coarsely, a counter, a buffer that is reused"


@dataclass(frozen=True, slots=True, kw_only=True)
class StressLimits(GateLimits):
    """Limits of `stress`; the gate's are for what does not come back with the bits of the ordinary run."""

    steps: int = limit(10, "Counts of what is kept, each after 4 more calls.", loose="lower")
    shapes: int = limit(24, "Shapes that are called one after the other.", loose="lower")
    memory_share: float = limit(
        0.25, "Share of the free device memory that one run on large inputs takes; without unit.", loose="lower"
    )


class Stress:
    """The law of stress."""

    name: ClassVar[str] = STRESS
    law: ClassVar[str] = (
        "The last of many calls is as the first: it gives the same bits, keeps no memory, and is right after other "
        "shapes, on another stream or device and in a large batch."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"structure", "numerics"})
    limits: ClassVar[type] = StressLimits

    def applies(self, subject: Subject) -> str:
        if subject.level != "full":
            return "an op is put under stress at the level full"
        if not subject.representative:
            return "only the representative case of each dtype is put under stress"
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        return _trials(subject, limits) if evidence.tensors else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        if evidence is None:
            return ()
        found: list[Finding] = []
        for trial in _trials(subject, limits):
            # What grows with every call grows with every shape, too.
            leaks = any(item.looks_like == _LEAK for item in found)
            found += self._of(trial, subject, evidence, seen, limits, leaks=leaks)
        return tuple(found)

    def _of(
        self, trial: Stressed, subject: Subject, evidence: Compared, seen: Seen, limits: LimitsOf, *, leaks: bool
    ) -> Iterator[Finding]:
        where, lost, answer = label_of(trial), broken(seen, trial), answered(seen, trial)
        if lost is not None:
            verdict = Verdict.FAIL if lost.role == "target" else Verdict.INCONCLUSIVE
            yield replace(self._finding(_OP, verdict, f"{where} did not come back: {lost}"), place=lost.where)
        if not isinstance(answer, Endured):
            return
        behaviour = answer.behaviour
        for problem in _first(behaviour.problems):
            when = f"{where}, {problem.when}" if problem.when else where
            yield self._finding(problem.tensor, Verdict.FAIL, f"{when}: {problem.detail}", _STATE)
        worst: dict[str, tuple[Verdict, str]] = {}
        for item in behaviour.different:
            tensor = item.measured.tensor
            errors = item.errors or sibling_errors(seen, evidence, subject.case, tensor)
            verdict, detail = judged(item, errors, limits(item.measured.dtype))
            if tensor not in worst or verdict.severity > worst[tensor][0].severity:
                worst[tensor] = verdict, detail
        for tensor, (verdict, detail) in worst.items():
            hint = _STATE if verdict is Verdict.FAIL else ""
            yield self._finding(tensor, verdict, f"{where}, {detail}", hint)
        yield from self._grown(where, () if leaks else answer.growth)
        said = f"{where}: {behaviour.equal} tensors have the bits of the first run"
        missing = (*behaviour.uncovered, *_impossible(subject))
        yield self._finding(_OP, Verdict.PASS, "; ".join((said, *behaviour.notes)), missing=missing)

    def _grown(self, where: str, growth: tuple[Growth, ...]) -> Iterator[Finding]:
        """Judge what grew in every step; of what grows together the first is told."""
        for item in growth:
            if item.sustained < _LEAST[item.what] or (item.per == "shape" and item.what not in _BY_SHAPE):
                continue
            total = len(item.steps) * item.count
            detail = f"{where}: {item.sustained:.3g} {item.what} more after each {item.per}, in every step of {total}"
            verdict = Verdict.FAIL if item.per == "call" else Verdict.PASS_WITH_LIMITATIONS
            yield self._finding(_OP, verdict, detail, _LEAK if verdict is Verdict.FAIL else "")
            return

    def _finding(
        self, tensor: str, verdict: Verdict, detail: str, hint: str = "", missing: tuple[str, ...] = ()
    ) -> Finding:
        return Finding(
            check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, looks_like=hint,
            not_covered=missing,
        )  # fmt: skip

    def controls(self) -> tuple[Control, ...]:
        item = Measured(tensor="out", dtype="float32", shape=(3, 129), judged=387)
        first: Seen = {Compare(): Returned(evidence=Compared(tensors=(item,)))}
        endure, reshape = Endure(steps=10, calls=_CALLS), Reshape(shapes=24)
        drift = Problem(tensor="out", when="in call 20", detail="its bits differ")

        def grew(*steps: int, what: Counted = "live tensors") -> Outcome:
            return Returned(evidence=Endured(
                behaviour=Behaviour(equal=80), growth=(Growth(what=what, steps=steps, count=_CALLS),)))  # fmt: skip

        by_shape = Growth(what="live tensors", steps=(2,) * 12, count=2, per="shape")
        rows: tuple[tuple[str, Verdict, Trial, Outcome], ...] = (
            ("nothing grows", Verdict.PASS, endure, grew(0, 3, -3, 0, 1, -1, 0, 0, 0, 0)),
            ("one tensor more after each call", Verdict.FAIL, endure, grew(*[4] * 10)),
            ("more in all steps but one", Verdict.PASS, endure, grew(*[4] * 9, 0)),
            ("8 bytes of noise", Verdict.PASS, endure, grew(*[32] * 10, what="bytes of host memory")),
            (
                "a call gives other bits",
                Verdict.FAIL,
                endure,
                Returned(evidence=Endured(behaviour=Behaviour(problems=(drift,)))),
            ),
            (
                "a tensor more for each shape",
                Verdict.PASS_WITH_LIMITATIONS,
                reshape,
                Returned(evidence=Endured(behaviour=Behaviour(), growth=(by_shape,))),
            ),
            ("it dies", Verdict.FAIL, reshape, Crashed(role="target", reason="was killed by SIGSEGV")),
        )
        return tuple(
            Control(name=name, expect=expect, seen={**first, trial: outcome}, subject=example(level="full"))
            for name, expect, trial, outcome in rows
        )


def _trials(subject: Subject, limits: LimitsOf) -> tuple[Stressed, ...]:
    numbers: StressLimits = limits(subject.case.dtypes[0])
    found: list[Stressed] = [Endure(steps=numbers.steps, calls=_CALLS), Reshape(shapes=numbers.shapes)]
    if subject.case.backend == "cuda":
        found += [Streams(), SecondDevice(), Large(share=numbers.memory_share)]
    return tuple(found)


def _first(problems: tuple[Problem, ...]) -> Iterator[Problem]:
    """Yield the first problem of each tensor, with how many more there are."""
    count: dict[str, int] = {}
    for problem in problems:
        count[problem.tensor] = count.get(problem.tensor, 0) + 1
    for problem in problems:
        if more := count.pop(problem.tensor, 0):
            said = f"{problem.detail}; {more} times" if more > 1 else problem.detail
            yield Problem(tensor=problem.tensor, when=problem.when, detail=said)


def _impossible(subject: Subject) -> Iterator[str]:
    if subject.case.backend != "cuda":
        yield "other streams and a second device: they need a GPU"
        yield "large inputs: the interpreter is too slow"


check = Stress()
