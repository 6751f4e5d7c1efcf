"""One outlier row must not blind the comparison of all the others: every slice is held to its own scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from opcheck.checks.gate import sibling_errors, siblings_for
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, against_golden, compared, example
from opcheck.core.finding import Finding
from opcheck.core.formats import format_of
from opcheck.core.measured import AxisSlices, Measured
from opcheck.core.outcome import Compare, Compared, Returned, Trial
from opcheck.core.policy import WIDE, ByWidth, limit
from opcheck.core.verdict import Verdict

LEAST_SCALE = 2.0**-12  # of a gradient's scale under a random upstream gradient: below it a slice is what cancelled
# Wide types: an exp2-based exponential is off by |x| / 2 units of roundoff or so where exp is off by one, and the
# reference may be exact in every slice.
LEAST_WIDE_QUOTIENT = 4.0  # units of roundoff that the reference is taken to be off by in its worst slice
FEWEST_JUDGED = 0.5  # share of the slices of an axis; below it the axis says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesLimits:
    """Limits of `slices`."""

    slice_factor: ByWidth = limit(
        ByWidth(narrow=4.0, wide=16.0),
        "Times the reference's worst relative slice error that any slice of the target may have; without unit.",
    )


class Slices:
    """The law of slices."""

    name: ClassVar[str] = "slices"
    law: ClassVar[str] = (
        "In every row, column or other fibre the target is as near to golden, relative to that fibre's own scale, as "
        "the reference is in its worst one."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"structure", "numerics"})
    limits: ClassVar[type] = SlicesLimits

    def applies(self, subject: Subject) -> str:
        return against_golden(subject)

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        trial = siblings_for(evidence, subject.case)
        return (trial,) if trial is not None else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        found = []
        for item in evidence.tensors if evidence else ():
            drawn = sibling_errors(seen, evidence, subject.case, item.tensor) if evidence else None
            beside = drawn.slices if drawn else {}
            # What a constant upstream gradient cancels to is noise; its size says nothing of the slice's scale.
            noise = LEAST_SCALE * drawn.random_scale if drawn else 0.0
            least = LEAST_WIDE_QUOTIENT * format_of(item.dtype).unit if item.dtype in WIDE else 0.0
            axes = [
                replace(axis, reference_quotient=max(axis.reference_quotient, beside.get(axis.axis, 0.0), least))
                for axis in item.slices
                if axis.judged_share >= FEWEST_JUDGED and axis.worst_scale >= noise
            ]
            if axes:
                found.append(self._judge(item, axes, limits(item.dtype).slice_factor.of(item.dtype)))
        return tuple(found)

    def _judge(self, item: Measured, axes: list[AxisSlices], factor: float) -> Finding:
        excess = {axis.axis: axis.target_quotient - factor * axis.reference_quotient for axis in axes}
        worst = max(axes, key=lambda axis: excess[axis.axis])
        allowed = worst.worst_scale * factor * worst.reference_quotient + 2 * worst.worst_floor
        wrong = excess[worst.axis] > 0
        where = ", ".join(":" if part < 0 else str(part) for part in worst.worst)
        detail = (
            f"slice [{where}] of scale {worst.worst_scale:.2g}: measured {worst.worst_error:.1e}, "
            f"allowed {allowed:.1e} ({factor:g} x {worst.reference_quotient:.1e} of the scale + twice its rounding); "
            f"{worst.judged_share:.0%} of the slices judged"
        )
        return Finding(
            check=self.name,
            tensor=item.tensor,
            verdict=Verdict.FAIL if wrong else Verdict.PASS,
            law=self.law,
            detail=detail,
            looks_like="one slice that is skipped, stale or scaled, beside a larger one that hides it" if wrong else "",
            numbers={
                "slice_error": worst.worst_error,
                "slice_allowed": allowed,
                "slice_share": worst.judged_share,
                "axis": float(worst.axis),
                "quotient": factor * worst.reference_quotient,
            },
        )

    def controls(self) -> tuple[Control, ...]:
        def axis(target: float, reference: float, share: float = 1.0) -> AxisSlices:
            return AxisSlices(
                axis=1, length=129, judged_share=share, reference_quotient=reference, target_quotient=target,
                worst=(2, -1), worst_error=target, worst_scale=1.0, worst_floor=2.0**-9,
            )  # fmt: skip

        rows = (
            ("as the reference's worst slice, times 4", Verdict.PASS, axis(4.0e-3, 1.0e-3)),
            ("a zeroed slice beside a large one", Verdict.FAIL, axis(1.0, 1.0e-3)),
            ("an exact reference allows rounding only", Verdict.FAIL, axis(1.0e-3, 0.0)),
        )
        return tuple(
            Control(
                name=name,
                expect=expect,
                subject=example(dtype="bfloat16"),
                seen={
                    Compare(): Returned(
                        evidence=Compared(
                            tensors=(
                                Measured(tensor="out", dtype="bfloat16", shape=(3, 129), judged=387, slices=(item,)),
                            )
                        )
                    )
                },
            )
            for name, expect, item in rows
        )


check = Slices()
