"""Golden, and the reference, are fit to judge by: one formula, its gradient, and digits to spare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.gate import GateLimits, sibling_errors, threshold_of
from opcheck.checks.protocol import (
    Control,
    LimitsOf,
    Seen,
    Subject,
    against_golden,
    answered,
    broken,
    compared,
    example,
)
from opcheck.core.finding import Finding
from opcheck.core.guards import Banded, Guarded, own_kernels
from opcheck.core.measured import Measured
from opcheck.core.memory import Observe, Observed
from opcheck.core.oracle import CANCELLED, NOISE, ORACLE, SAME_FORMULA, SHARE, Examine, Examined, Gap, Point
from opcheck.core.outcome import Compare, Compared, Crashed, Outcome, Returned, Trial
from opcheck.core.policy import WIDE
from opcheck.core.verdict import Verdict

_GOLDEN, _OP = "golden", "the op"
_MANY = 256  # elements; that so many roundings agree by chance is out of the question
_EXACT = "float64"


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleLimits(GateLimits):
    """The gate's limits, for the threshold that golden's own error must be far below."""


class Oracle:
    """The law of the oracle."""

    name: ClassVar[str] = ORACLE
    law: ClassVar[str] = (
        "Golden is the reference's formula, its gradient is that of its forward, its own error is far below what it "
        "judges, and the target is another implementation."
    )
    requires: ClassVar[frozenset[str]] = frozenset()
    limits: ClassVar[type] = OracleLimits

    def applies(self, subject: Subject) -> str:
        if not subject.representative:
            return "golden and reference themselves are looked at on the representative case of each dtype"
        if subject.level == "quick" and subject.case.dtype != subject.contract.dtypes[0]:
            return "at the level quick golden and reference themselves are looked at in the first dtype only"
        return against_golden(subject)

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        found = answered(seen, Examine())
        if isinstance(found, Examined) and subject.case.backend == "cpu" and _alike(evidence, found):
            return (Examine(), Observe())
        return (Examine(),)

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        lost, evidence, found = broken(seen, Examine()), compared(seen), answered(seen, Examine())
        if lost is not None:
            unseen = self._finding(_GOLDEN, Verdict.INCONCLUSIVE, f"the look at it did not come back: {lost}")
            return (replace(unseen, place=lost.where),)
        if evidence is None or not isinstance(found, Examined):
            return ()
        complaints = (
            *self._formulas(evidence, found),
            *self._gradient(found),
            *self._orders(subject, evidence, found, seen, limits),
            *(self._finding(item.tensor, Verdict.INCONCLUSIVE, _inexact(item)) for item in found.points),
            *self._itself(evidence, found, seen),
        )
        return complaints or (
            replace(self._finding(_GOLDEN, Verdict.PASS, _witness(found)), not_covered=found.not_covered),
        )

    def _formulas(self, evidence: Compared, found: Examined) -> Iterator[Finding]:
        for gap in found.formulas:
            item = evidence.find(gap.tensor)
            allowed = max(SAME_FORMULA * gap.scale, CANCELLED * item.reference_error if item is not None else 0.0)
            if gap.error > allowed:
                detail = (
                    f"reference and golden are not the same formula: in FP64 they differ by {gap.error:.1e}, more than "
                    f"{allowed:.1e}; at {list(gap.index)} golden gives {gap.golden:.17g}, "
                    f"the reference {gap.other:.17g}"
                )
                yield self._finding(gap.tensor, Verdict.INCONCLUSIVE, detail, "another constant, or a term too many")

    def _gradient(self, found: Examined) -> Iterator[Finding]:
        if found.gradient == "fails":
            detail = f"golden's gradient is not that of its forward, says gradcheck: {found.complaint}"
            yield self._finding(_GOLDEN, Verdict.INCONCLUSIVE, detail, "a term is detached, or a backward is wrong")

    def _orders(
        self, subject: Subject, evidence: Compared, found: Examined, seen: Seen, limits: LimitsOf
    ) -> Iterator[Finding]:
        for gap in found.orders:
            item = evidence.find(gap.tensor)
            if item is None or item.exact or item.dtype == _EXACT:
                continue
            if not item.reference_error:  # narrower, it has every digit of golden: nothing is lost in either
                continue
            siblings = sibling_errors(seen, evidence, subject.case, gap.tensor)
            allowed = threshold_of(item, siblings, limits(item.dtype)).value
            if gap.error > max(SHARE * allowed, NOISE * gap.scale):
                detail = (
                    f"the oracle is not accurate enough here: another order of its reductions moves golden by "
                    f"{gap.error:.1e}, the threshold is {allowed:.1e}; at {list(gap.index)} from "
                    f"{gap.golden:.17g} to {gap.other:.17g}"
                )
                yield self._finding(gap.tensor, Verdict.INCONCLUSIVE, detail, "golden cancels what it has summed")

    def _itself(self, evidence: Compared, found: Examined, seen: Seen) -> Iterator[Finding]:
        if found.itself:
            detail = f"the target is its own reference: {found.itself}"
            yield self._finding(_OP, Verdict.INCONCLUSIVE, detail)
            return
        alike = [item.tensor for item in _alike(evidence, found)]
        if alike and _launches_nothing(seen):
            detail = f"every bit of {', '.join(alike)} is the reference's, and no kernel of the op's own was launched"
            yield self._finding(_OP, Verdict.PASS_WITH_LIMITATIONS, detail)

    def _finding(self, tensor: str, verdict: Verdict, detail: str, hint: str = "") -> Finding:
        return Finding(check=self.name, tensor=tensor, verdict=verdict, law=self.law, detail=detail, looks_like=hint)

    def controls(self) -> tuple[Control, ...]:
        near = Gap(tensor="out", index=(2, 128), golden=1.0, other=1.0 + 1e-12, error=1e-12, scale=1.0)
        far = replace(near, other=1.000005, error=5e-6)
        item = Measured(
            tensor="out", dtype="float32", shape=(3, 129), judged=387, scale=1.0, reference_error=1e-7,
            target_error=1e-7, digest="same",
        )  # fmt: skip
        point = Point(tensor="out", at="x = 1e-10", golden=1.00000008e-10, exact=1e-10, error=8e-18, allowed=8e-19)
        alike = Examined(gradient="holds", digests=(("out", "same"),))
        none, some = Observed(), Observed(launches=(("_kernel", 3),), accesses=12)
        rows: tuple[tuple[str, Verdict, Outcome, Observed | None], ...] = (
            ("one formula", Verdict.PASS, _returned(Examined(formulas=(near,), gradient="holds")), None),
            ("another eps", Verdict.INCONCLUSIVE, _returned(Examined(formulas=(far,))), None),
            (
                "gradcheck fails",
                Verdict.INCONCLUSIVE,
                _returned(Examined(gradient="fails", complaint="not equal")),
                None,
            ),
            ("two orders agree", Verdict.PASS, _returned(Examined(orders=(near,))), None),
            ("golden cancels", Verdict.INCONCLUSIVE, _returned(Examined(orders=(far,))), None),
            ("golden loses digits", Verdict.INCONCLUSIVE, _returned(Examined(points=(point,))), None),
            ("the target is the reference", Verdict.INCONCLUSIVE, _returned(Examined(itself="one function")), None),
            ("bit-equal without a kernel", Verdict.PASS_WITH_LIMITATIONS, _returned(alike), none),
            ("bit-equal with a kernel", Verdict.PASS, _returned(alike), some),
            ("golden dies", Verdict.INCONCLUSIVE, Crashed(role="golden", reason="was killed by SIGSEGV"), None),
        )
        first: Seen = {Compare(): Returned(evidence=Compared(tensors=(item,)))}
        return tuple(
            Control(
                name=name, expect=expect, subject=example(),
                seen={**first, Examine(): outcome, **({Observe(): Returned(evidence=ran)} if ran is not None else {})},
            )
            for name, expect, outcome, ran in rows
        )  # fmt: skip


def _returned(found: Examined) -> Outcome:
    return Returned(evidence=found)


def _alike(evidence: Compared, found: Examined) -> tuple[Measured, ...]:
    """Return the wide tensors of many elements that are rounded more than once, if all have the reference's every bit.

    A result that is rounded once, to the nearest, has the same bits from everybody.
    """
    digests = dict(found.digests)
    many = tuple(item for item in evidence.tensors if item.dtype in WIDE and item.judged >= _MANY)
    same = all(item.digest == digests.get(item.tensor) for item in many)
    return tuple(item for item in many if item.reference_error > item.rounding_floor) if same else ()


def _launches_nothing(seen: Seen) -> bool:
    observed, banded = answered(seen, Observe()), answered(seen, Guarded())
    if isinstance(banded, Banded) and banded.kernels is not None:
        return not banded.launches and not own_kernels(banded.kernels)
    return isinstance(observed, Observed) and not (observed.launches or observed.breaches or observed.blind)


def _inexact(item: Point) -> str:
    return (
        f"the oracle is not accurate enough here: at {item.at} golden is {item.error:.1e} from mpmath's value, more "
        f"than {item.allowed:.1e}, a sixteenth of an ulp; golden gives {item.golden:.17g}, mpmath {item.exact:.17g}"
    )


def _witness(found: Examined) -> str:
    """Say what agrees, and what was left out."""
    said = []
    for gaps, what in ((found.formulas, "the reference in FP64"), (found.orders, "another order of its reductions")):
        if gaps:
            worst = max(gaps, key=_relative)
            said.append(f"{what} is at most {_relative(worst):.1e} of the scale from golden, in {worst.tensor}")
    if found.gradient == "holds":
        said.append("gradcheck holds")
    if found.evaluated:
        said.append(f"mpmath agrees at {found.evaluated} points")
    return "; ".join((*said, *found.skipped)) or "nothing of golden could be looked at"


def _relative(gap: Gap) -> float:
    return gap.error / gap.scale if gap.scale else gap.error


check = Oracle()
