"""What a run only reads is as it was, bit for bit, with the memory around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.gate import number
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, answered, broken, compared, example
from opcheck.core.behaviour import Changed, SavedTensors, Watched
from opcheck.core.finding import Finding
from opcheck.core.layouts import GRADIENT
from opcheck.core.outcome import Compare, Compared, Returned, Trial
from opcheck.core.verdict import Verdict

_SAVED = "saved tensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntactLimits:
    """`intact` has no limits: a bit changes or it does not."""


class Intact:
    """The law of intact inputs."""

    name: ClassVar[str] = "intact"
    law: ClassVar[str] = (
        "Inputs, outputs, upstream gradients and saved tensors, and the memory around them, keep their bits; only "
        "arguments named in mutates_args change."
    )
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = IntactLimits

    def applies(self, subject: Subject) -> str:
        return ""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        if compared(seen) is None:
            return (Compare(),)
        return (SavedTensors(),) if _looks_at_saved(subject) else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        if evidence is None:
            return ()
        findings = [self._changed(item) for item in evidence.changed]
        if not findings:
            findings.append(self._finding("the case", Verdict.PASS, f"{evidence.watched} tensors have the same bits"))
        if subject.representative:
            findings += [self._untouched(name) for name in evidence.untouched]
        lost = broken(seen, SavedTensors())
        if lost is not None:
            found = self._finding(_SAVED, Verdict.FAIL, f"a run in which they are watched: {lost}")
            findings.append(replace(found, place=lost.where))
        saved = answered(seen, SavedTensors())
        if isinstance(saved, Watched):
            findings += [self._changed(item) for item in saved.changed]
            if not saved.changed:
                findings.append(self._finding(_SAVED, Verdict.PASS, f"{saved.count} have the same bits"))
        return tuple(findings)

    def _changed(self, item: Changed) -> Finding:
        if item.index is None:
            side = "before" if item.place < 0 else "behind"
            detail = (
                f"{item.count} bytes of the memory around it changed, the first {abs(item.place)} elements {side} its "
                f"first element"
            )
            return self._finding(item.tensor, Verdict.FAIL, detail, "a store outside of the tensor: a missing mask")
        place = ", ".join(map(str, item.index))
        detail = (
            f"{item.count} of {item.total} elements changed, the first at [{place}]: {number(item.before)} became "
            f"{number(item.after)}"
        )
        return self._finding(item.tensor, Verdict.FAIL, detail, _hint(item.tensor))

    def _untouched(self, name: str) -> Finding:
        detail = f"mutates_args names {name}, and nothing was written into it"
        return self._finding(name, Verdict.PASS_WITH_LIMITATIONS, detail)

    def _finding(self, tensor: str, verdict: Verdict, detail: str, hint: str = "") -> Finding:
        return Finding(check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, looks_like=hint)

    def controls(self) -> tuple[Control, ...]:
        wrote = Changed(tensor="x", count=3, total=387, index=(2, 1), before=1.5, after=0.5)
        around = Changed(tensor="x", count=4, total=387, index=None, place=129)
        saved = Changed(tensor="saved tensor 0", count=1, total=3, index=(0,), before=1.0, after=2.0)
        good, bad = Compared(tensors=(), watched=3), Compared(tensors=(), watched=3, changed=(wrote,))
        rows: tuple[tuple[str, Verdict, Seen], ...] = (
            ("all as it was", Verdict.PASS, {Compare(): Returned(evidence=good)}),
            ("an input changes", Verdict.FAIL, {Compare(): Returned(evidence=bad)}),
            (
                "memory behind an input changes",
                Verdict.FAIL,
                {Compare(): Returned(evidence=Compared(tensors=(), changed=(around,)))},
            ),
            (
                "a saved tensor changes",
                Verdict.FAIL,
                {
                    Compare(): Returned(evidence=good),
                    SavedTensors(): Returned(evidence=Watched(count=2, changed=(saved,))),
                },
            ),
            (
                "what mutates_args names stays",
                Verdict.PASS_WITH_LIMITATIONS,
                {Compare(): Returned(evidence=Compared(tensors=(), untouched=("x",)))},
            ),
        )
        return tuple(Control(name=name, expect=expect, seen=seen, subject=example()) for name, expect, seen in rows)


def _looks_at_saved(subject: Subject) -> bool:
    return subject.representative and not subject.mutated


def _hint(tensor: str) -> str:
    if tensor.startswith(GRADIENT):
        return "the backward writes its result into the upstream gradient, which others may still read"
    if tensor.startswith("saved"):
        return "the backward writes into what it saved: a second backward reads something else"
    if tensor.startswith("out"):
        return "the backward writes into an output, which others may have saved"
    return "the kernel writes into what it was to read: name it in mutates_args, or write into a new tensor"


check = Intact()
