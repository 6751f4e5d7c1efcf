"""Shape, dtype, device, and where NaN and Inf are: before any tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.gate import GateLimits, place, sibling_errors, siblings_for, threshold_of
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, broken, compared, example
from opcheck.core.finding import Finding
from opcheck.core.laws import Threshold
from opcheck.core.measured import Element, Measured, Misplaced
from opcheck.core.outcome import (
    Compare,
    Compared,
    Crashed,
    Misfit,
    Outcome,
    Raised,
    Returned,
    TimedOut,
    Trial,
)
from opcheck.core.verdict import Verdict

_GRID_LAW = (
    "Each number is the one of the grid nearest to golden, which is not rounded; a tie goes where the reference's does."
)
CASE = "the case"  # the tensor of a finding about a run that did not come back
_NO_BACKWARD = "no backward is registered: call .register_autograd, or declare the inputs under no_grad with a reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureLimits(GateLimits):
    """The gate's limits: they say how near the overflow bound Inf and the largest value are both right."""


class Structure:
    """The law of structure."""

    name: ClassVar[str] = "structure"
    law: ClassVar[str] = (
        "Target and reference agree in shape, dtype and device, and NaN and Inf stand where golden has them."
    )
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = StructureLimits

    def applies(self, subject: Subject) -> str:
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        if subject.contract.random:
            return ()
        if any(item.overflow_gap for item in evidence.tensors) and (trial := siblings_for(evidence, subject.case)):
            return (trial,)
        return ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        lost = broken(seen, Compare())
        if lost is not None:
            return (self._lost(lost),)
        evidence = compared(seen)
        if evidence is None:
            return ()
        misfits = tuple(self._misfit(item) for item in evidence.misfits)
        return misfits + tuple(self._judge(subject, item, evidence, seen, limits) for item in evidence.tensors)

    def _lost(self, lost: Outcome) -> Finding:
        role = "target" if isinstance(lost, Returned) else lost.role
        verdict = Verdict.FAIL if role == "target" else Verdict.INCONCLUSIVE
        backward = isinstance(lost, Raised) and lost.phase == "backward"
        detail = str(lost) if role == "target" else f"{lost}; nothing can be judged until {role} is mended"
        hint = _hint(lost) if role == "target" else ""
        tensor = "gradients" if backward else CASE
        law = "A run comes back on every case that the contract allows."
        place = "" if isinstance(lost, Returned) else lost.where
        return Finding(
            check=self.name, tensor=tensor, verdict=verdict, law=law, detail=detail, looks_like=hint, place=place
        )

    def _misfit(self, item: Misfit) -> Finding:
        verdict = Verdict.FAIL if item.role == "target" else Verdict.INCONCLUSIVE
        hint = next((meaning for sign, meaning in _SAID if sign in item.problem), "") if item.role == "target" else ""
        return Finding(
            check=self.name, tensor=item.tensor, verdict=verdict, law=self.law, detail=item.problem, looks_like=hint
        )

    def _judge(self, subject: Subject, item: Measured, evidence: Compared, seen: Seen, limits: LimitsOf) -> Finding:
        found = Verdict.PASS
        detail = f"{item.judged} of {item.numel} elements judged"
        if subject.contract.random:
            # Which elements are drawn, and with them where Inf stands and what integers are, is not golden's to say.
            detail = "shape, dtype and device are the reference's; the op is declared random"
            return Finding(check=self.name, tensor=item.tensor, verdict=found, law=self.law, detail=detail)
        looks_like = ""
        if item.misplaced:
            found = Verdict.FAIL
            detail = "; ".join(f"{bad.kind}: {bad.count} of {item.numel}, {place(bad.first)}" for bad in item.misplaced)
        elif item.unequal:
            found = Verdict.FAIL
            detail, looks_like = _unequal(item)
        elif not item.exact and (item.overflow_gap or item.held):
            gate = threshold_of(item, sibling_errors(seen, evidence, subject.case, item.tensor), limits(item.dtype))
            if item.overflow_gap > gate.value and item.overflow_at is not None:
                found = Verdict.FAIL
                detail = (
                    f"overflow on one side only, {item.overflow_gap:.1e} from the bound, allowed {gate.value:.1e}, "
                    f"{place(item.overflow_at)}"
                )
            elif math.isfinite(item.held_error) and item.held_error > (held := _held_floor(item, gate)):
                found = Verdict.FAIL
                detail = (
                    f"where the reference is not finite ({item.held} elements) the target is held to the rounding "
                    f"floor: measured {item.held_error:.1e}, allowed {held:.1e}"
                )
        if found is Verdict.PASS and (item.void or item.alike):
            found = Verdict.PASS_WITH_LIMITATIONS
            detail = _limitation(item)
        law = _GRID_LAW if item.grid else self.law
        return Finding(
            check=self.name, tensor=item.tensor, verdict=found, law=law, detail=detail, looks_like=looks_like
        )

    def controls(self) -> tuple[Control, ...]:
        finite = Element(index=(2, 128), golden=1.0, reference=1.0, target=math.nan)
        lost = Misplaced(kind="NaN where golden is finite", count=3, first=finite)
        right = Measured(tensor="out", dtype="float32", shape=(3, 129), judged=387, scale=1.0)
        wrong = Measured(tensor="out", dtype="float32", shape=(3, 129), judged=387, scale=1.0, misplaced=(lost,))
        void = Measured(tensor="grad x", dtype="float32", shape=(3, 129), judged=380, scale=1.0, void=7)
        tie = Element(index=(0, 1), golden=2.5, reference=2.0, target=3.0)
        grid = Measured(tensor="out", dtype="int8", shape=(3, 129), judged=387, grid=True)
        tied = replace(grid, unequal=1, ties=1, worst=(tie,))
        shape = Misfit(tensor="out", problem="shape [3, 128] should be [3, 129]")
        died = Crashed(role="target", reason="was killed by SIGSEGV")
        dead_golden = Crashed(role="golden", reason="was killed by SIGSEGV")
        cases: tuple[tuple[str, Verdict, Outcome], ...] = (
            ("finite where golden is finite", Verdict.PASS, Returned(evidence=Compared(tensors=(right,)))),
            ("NaN where golden is finite", Verdict.FAIL, Returned(evidence=Compared(tensors=(wrong,)))),
            ("golden is NaN", Verdict.PASS_WITH_LIMITATIONS, Returned(evidence=Compared(tensors=(void,)))),
            ("every number the nearest of its grid", Verdict.PASS, Returned(evidence=Compared(tensors=(grid,)))),
            ("a tie rounded away from zero", Verdict.FAIL, Returned(evidence=Compared(tensors=(tied,)))),
            ("wrong shape", Verdict.FAIL, Returned(evidence=Compared(tensors=(), misfits=(shape,)))),
            ("the target dies", Verdict.FAIL, died),
            ("golden dies", Verdict.INCONCLUSIVE, dead_golden),
        )
        return tuple(
            Control(name=name, expect=expect, seen={Compare(): outcome}, subject=example())
            for name, expect, outcome in cases
        )


def _unequal(item: Measured) -> tuple[str, str]:
    """Say which integers or numbers of a grid are wrong, and what that looks like."""
    first = place(item.worst[0])
    if not item.grid:
        return f"{item.unequal} of {item.numel} integers differ, the first {first}", ""
    detail = f"{item.unequal} of {item.numel} are not the nearest number of the grid, the first {first}"
    if item.ties < item.unequal:
        return detail, ""
    return f"{detail}; all are ties", "ties that are rounded away from zero, or up, and not to even"


def _held_floor(item: Measured, gate: Threshold) -> float:
    return max(gate.absolute_floor, item.held_floor)


def _limitation(item: Measured) -> str:
    parts = []
    if item.void:
        parts.append(f"golden's gradient is NaN at {item.void} of {item.numel} elements although all inputs are finite")
    if item.alike:
        parts.append(f"target and reference are alike not finite at {item.alike} elements where golden is finite")
    return "; ".join(parts)


def _hint(lost: Outcome) -> str:
    if isinstance(lost, TimedOut):
        return "a loop that never ends, or a deadlock; give a slow case more with --timeout"
    if isinstance(lost, Crashed):
        return next((meaning for sign, meaning in _ENDED if sign in lost.reason), "")
    if not isinstance(lost, Raised):
        return ""
    return next((meaning for sign, meaning in _SAID if sign in lost.message), "")


# How the process of a target ends, and what that means for the author; the first that occurs counts.
_ENDED: tuple[tuple[str, str], ...] = (
    ("SIGKILL", "the target takes more memory than there is"),
    ("killed by", "an access out of bounds"),
    ("exited", "something in the target ends the process instead of raising"),
)
# What torch says when a target does not come back, and what it means for the author.
_SAID: tuple[tuple[str, str], ...] = (
    ("no autograd formula", _NO_BACKWARD),
    ("does not require grad", _NO_BACKWARD),
    ("Unable to cast", "the target returns something else than its annotation says: return a Tensor"),
    ("must not also be an input", "the target returns an input or a view of one: return a clone"),
)


check = Structure()
