"""Ops that draw random numbers: the seed decides, the reference's rate and scale hold, one mask serves both ways.

No law needs to know what is drawn: everything is relative to the reference's own runs under the same seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.gate import number
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.draws import RANDOMNESS, Changes, Drawing, Drawn, Draws, Kept, Tie, Values
from opcheck.core.finding import Finding
from opcheck.core.measured import Element, Index, Measured
from opcheck.core.outcome import Compare, Compared, Outcome, Raised, Returned, Trial
from opcheck.core.policy import limit
from opcheck.core.proportions import SIGNIFICANT, difference
from opcheck.core.verdict import Verdict

# How much must be seen before chance is out of the question: 2^-30 = 1e-9 for events that are as likely as not.
LEAST_CHANGES = 30  # of the reference, where the target never changes
LEAST_TIED = 30  # elements dropped in both, and kept in both, before output and gradient are taken to share a mask
LEAST_AGREEING = 64  # values of the reference that came back, before its values are taken to be the same in every run
CLOSE = 0.05  # within which a rate or a ratio is recognised

LAWS: Mapping[str, str] = {
    "seed": "Under one seed every run gives the same bits, in the outputs and in every gradient.",
    "advance": "Every call, and every seed, draws numbers of its own where the reference does.",
    "NaN": "No element is NaN where neither the inputs nor any run of the reference has one.",
    "rate": "The target keeps as many elements as the reference does.",
    "scale": "Kept elements have the value that the reference gives them whenever it keeps them.",
    "mask": "The backward drops what the forward dropped, where the reference's does.",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomnessLimits:
    """Limits of `randomness`."""

    runs: int = limit(16, "Seeds under which target and reference run.", loose="lower")
    max_ulp: float = limit(
        2.0, "Largest distance of a kept value from the reference's, in units in the last place of the latter."
    )


@dataclass(frozen=True, slots=True)
class _Fault:
    law: str
    detail: str
    hint: str


class Randomness:
    """The law of random ops."""

    name: ClassVar[str] = RANDOMNESS
    law: ClassVar[str] = (
        "The seed decides every bit, the next call draws others, and elements are kept as often and scaled as the "
        "reference's are, through one mask forward and backward."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"structure"})
    limits: ClassVar[type] = RandomnessLimits

    def applies(self, subject: Subject) -> str:
        return "" if subject.contract.random else "the op is not declared random"

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        return (_trial(subject, limits),) if evidence.tensors else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        trial = _trial(subject, limits)
        lost = broken(seen, trial)
        if lost is not None:
            verdict = Verdict.FAIL if lost.role == "target" else Verdict.INCONCLUSIVE
            detail = f"a run under another seed did not come back: {lost}"
            found = Finding(check=self.name, tensor="the case", verdict=verdict, law=self.law, detail=detail)
            return (replace(found, place=lost.where),)
        drawing = answered(seen, trial)
        if not isinstance(drawing, Drawing):
            return ()
        return tuple(self._judge(subject, item, drawing) for item in drawing.tensors)

    def _judge(self, subject: Subject, item: Drawn, drawing: Drawing) -> Finding:
        z = _deviate(item.kept)
        faults = [*_faults(subject, item, drawing, z)]
        kept = item.kept
        numbers = {"drawn": float(not kept.fixed), "compared": float(item.values.compared), "z": z}
        if kept.eligible:
            numbers |= {"keep_rate": _rate(kept.target, kept), "reference_keep_rate": _rate(kept.reference, kept)}
        if faults:
            verdict, detail = Verdict.FAIL, "; ".join(fault.detail for fault in faults)
        elif not item.values.steady:
            verdict = Verdict.PASS_WITH_LIMITATIONS
            detail = f"its values are not judged: the reference's own differ from seed to seed; {_rates(item.kept, z)}"
        else:
            verdict = Verdict.PASS
            judged = item.values.compared if item.values.agreeing >= LEAST_AGREEING else 0
            detail = f"{_rates(item.kept, z)}; {judged} of {item.numel} values compared with the reference's"
        return Finding(
            check=self.name,
            tensor=item.tensor,
            verdict=verdict,
            law=LAWS[faults[0].law] if faults else self.law,
            detail=detail,
            looks_like="; ".join(dict.fromkeys(fault.hint for fault in faults)),
            numbers=numbers,
        )

    def controls(self) -> tuple[Control, ...]:
        half = Kept(target=(190, 200) * 8, reference=(196, 192) * 8, eligible=387)
        changes = Changes(target=600, reference=190)
        values = Values(agreeing=2700, compared=387, excess=0.5)
        right = Drawn(
            tensor="grad x", dtype="float32", numel=387, in_a_row=changes, across=changes, kept=half, values=values
        )
        tie = Tie(output="out", gradient="grad x", dropped=3000, kept=3000, total=6192)
        stuck = Changes(target=0, reference=190)
        at = Element(index=(2, 1), golden=0.0, reference=2.0, target=1.0)
        far = Values(agreeing=2700, compared=387, excess=4e6, worst=at, ratio=0.5)
        quarter = Kept(target=(97, 95) * 8, reference=half.reference, eligible=387)
        noise = replace(right, values=Values(steady=False), kept=replace(half, target=(387,) * 16))
        redrawn = replace(tie, forward=1500, backward=1500, first=(0, 3))
        dead = Raised(role="target", phase="forward", error="ValueError", message="no")
        rows: tuple[tuple[str, Verdict, Outcome], ...] = (
            ("as the reference draws", Verdict.PASS, _drawing(right, tie)),
            ("one seed, other bits", Verdict.FAIL, _drawing(replace(right, unequal=1), tie)),
            ("the next call draws the same", Verdict.FAIL, _drawing(replace(right, in_a_row=stuck), tie)),
            ("every seed draws the same", Verdict.FAIL, _drawing(replace(right, across=stuck), tie)),
            ("half of the rate", Verdict.FAIL, _drawing(replace(right, kept=quarter), tie)),
            ("half of the scale", Verdict.FAIL, _drawing(replace(right, values=far), tie)),
            ("another mask backward", Verdict.FAIL, _drawing(right, redrawn)),
            ("as the reference's masks", Verdict.PASS, _drawing(right, replace(redrawn, reference=1))),
            ("NaN of its own", Verdict.FAIL, _drawing(replace(right, nan=3, nan_at=(0, 1)), tie)),
            ("values of its own in every run", Verdict.PASS_WITH_LIMITATIONS,
             _drawing(replace(noise, kept=Kept(target=(387,) * 16, reference=(387,) * 16, eligible=387)), tie)),
            ("the target dies", Verdict.FAIL, dead),
        )  # fmt: skip
        subject = example("elementwise")
        subject = replace(subject, contract=replace(subject.contract, random=True))
        measured = Measured(tensor="grad x", dtype="float32", shape=(3, 129), judged=387)
        first: Seen = {Compare(): Returned(evidence=Compared(tensors=(measured,)))}
        trial = Draws(runs=16, max_ulp=2.0)
        return tuple(
            Control(name=name, expect=expect, seen={**first, trial: outcome}, subject=subject)
            for name, expect, outcome in rows
        )


def _trial(subject: Subject, limits: LimitsOf) -> Draws:
    numbers: RandomnessLimits = limits(subject.case.dtypes[0])
    return Draws(runs=numbers.runs, max_ulp=numbers.max_ulp)


def _drawing(item: Drawn, tie: Tie) -> Outcome:
    return Returned(evidence=Drawing(tensors=(item,), ties=(tie,), repeats=2, varied="with poisoned allocations"))


def _faults(subject: Subject, item: Drawn, drawing: Drawing, z: float) -> Iterator[_Fault]:
    """Yield what is wrong with a tensor; of numbers that never change, the rate and the mask say nothing more."""
    if item.unequal and _promised(subject, item.tensor):
        detail = f"{item.unequal} of {drawing.repeats} repeats under one seed give other bits, {drawing.varied}"
        yield _Fault(
            "seed", detail,
            "the seed is not used: numbers that are not from torch's generator; or memory read before it is written",
        )  # fmt: skip
    stuck = [*_stuck(item)]
    yield from stuck
    if item.nan:
        yield _Fault("NaN", f"{item.nan} elements are NaN, the first at {_place(item.nan_at)}", "0 times Inf, or 0 / 0")
    if not stuck and z > SIGNIFICANT:
        yield _Fault("rate", _rates(item.kept, z), _odd_rate(item.kept))
    values = item.values
    if values.steady and values.agreeing >= LEAST_AGREEING and values.excess > 1 and values.worst is not None:
        worst = values.worst
        detail = (
            f"where both keep an element the target's is {values.excess:.2g} times as far from the reference's as "
            f"allowed: reference {number(worst.reference)}, target {number(worst.target)} at {_place(worst.index)}; "
            f"in the middle the target's is {values.ratio:.3g} times the reference's"
        )
        yield _Fault("scale", detail, _odd_scale(item))
    for tie in drawing.ties:
        if tie.gradient == item.tensor and _shared(tie) and tie.forward + tie.backward:
            detail = (
                f"of {tie.total} elements {tie.backward} are zero in it and not in {tie.output}, {tie.forward} in "
                f"{tie.output} and not in it, the first at {_place(tie.first)}; the reference's are zero in both"
            )
            yield _Fault("mask", detail, "the backward draws a mask of its own")


def _stuck(item: Drawn) -> Iterator[_Fault]:
    for changes, detail, hint in (
        (item.across, "no bit differs from one seed to the next", "the seed is not used: every call draws the same"),
        (item.in_a_row, "a second call without a new seed gives the same bits",
         "the offset of the generator does not advance"),
    ):  # fmt: skip
        if not changes.target and (changes.always or changes.reference >= LEAST_CHANGES):
            yield _Fault("advance", f"{detail}; the reference's change", hint)
            return


def _shared(tie: Tie) -> bool:
    """Say whether the reference goes backward through the mask that it went forward with."""
    return not tie.reference and min(tie.dropped, tie.kept) >= LEAST_TIED


def _deviate(kept: Kept) -> float:
    """Return how far apart the rates are; 0 of one stream only, where each has the mask that it happens to have."""
    if len(kept.target) < 2 or (kept.fixed and 0 < kept.reference[0] < kept.eligible):
        return 0.0
    return difference(kept.target, kept.reference, kept.eligible)


def _rates(kept: Kept, z: float) -> str:
    if not kept.eligible:
        return "nothing is kept, nor by the reference"
    return (
        f"it keeps {_rate(kept.target, kept):.4f} of {kept.eligible} elements over {len(kept.target)} seeds, the "
        f"reference {_rate(kept.reference, kept):.4f} ({z:.1f} standard deviations, allowed {SIGNIFICANT:g})"
    )


def _rate(counts: tuple[int, ...], kept: Kept) -> float:
    return sum(counts) / (kept.eligible * len(counts))


def _odd_rate(kept: Kept) -> str:
    rate, reference = _rate(kept.target, kept), _rate(kept.reference, kept)
    if abs(rate + reference - 1) < CLOSE:
        return "elements are kept with p instead of 1 - p"
    return "the numbers are compared with another threshold, or are not uniform"


def _odd_scale(item: Drawn) -> str:
    rate = _rate(item.kept.reference, item.kept)
    if abs(item.values.ratio - rate) < CLOSE * rate:
        return "kept elements are not scaled by 1 / (1 - p)"
    return "kept elements are scaled by something else than the reference's"


def _place(index: Index) -> str:
    return f"[{', '.join(map(str, index))}]"


def _promised(subject: Subject, tensor: str) -> bool:
    contract = subject.contract
    return contract.deterministic_backward if tensor.startswith("grad ") else contract.deterministic_forward


check = Randomness()
