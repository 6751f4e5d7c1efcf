"""Errors that all go one way: a kernel that truncates is within every tolerance and wrong on average."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, against_golden, answered, compared, example
from opcheck.core.finding import Finding
from opcheck.core.layouts import revalues_gradient
from opcheck.core.measured import Bias as Means
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compare, Compared, Redraw, Redrawn, Returned, Trial
from opcheck.core.policy import WIDE, ByWidth, limit
from opcheck.core.verdict import Verdict

OUTWARD, UPWARD = "away from zero", "upwards"
SIGNIFICANT = 6.0  # standard errors: one false alarm in 10^9 comparisons of unbiased errors
# A number that all elements share and that is rounded once, as a scale is, moves them all one way in one draw and the
# other way in the next. A quarter of such draws agree with the first (measured): all of 5 in one case of 1,000.
CONFIRMING = Redraw(count=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasLimits:
    """Limits of `bias`."""

    max_bias: ByWidth = limit(
        ByWidth(narrow=0.125, wide=8.0), "Largest mean signed error, in units in the last place of golden."
    )


class Bias:
    """The law of bias."""

    name: ClassVar[str] = "bias"
    law: ClassVar[str] = "The target's errors have no mean of their own: not away from zero, not upwards."
    requires: ClassVar[frozenset[str]] = frozenset({"structure", "numerics"})
    limits: ClassVar[type] = BiasLimits

    def applies(self, subject: Subject) -> str:
        return against_golden(subject)

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        if compared(seen) is None:
            return (Compare(),)
        biased = any(
            _excess(*_worst_way(item, allowed)[1:], allowed) > 0 for item, allowed in _judged(subject, seen, limits)
        )
        return (CONFIRMING,) if biased else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        more = answered(seen, CONFIRMING)
        draws = more if isinstance(more, Redrawn) else Redrawn(draws=())
        return tuple(
            self._judge(item, allowed, draws.of(item.tensor)) for item, allowed in _judged(subject, seen, limits)
        )

    def _judge(self, item: Measured, allowed: float, more: tuple[Measured, ...]) -> Finding:
        target, reference = _means(item)
        way, mean, error, beside = _worst_way(item, allowed)
        spread = _spread(reference) if item.dtype in WIDE else 0.0
        agreeing = [_agrees(other, way, mean, allowed) for other in more if other.bias and other.reference_bias]
        wrong = spread <= allowed and _excess(mean, error, beside, allowed) > 0 and all(agreeing)
        detail = (
            f"mean signed error {way} {mean:+.3f} ulp (standard error {error:.4f}) over {target.count} elements, "
            f"the reference's {beside:+.3f}, allowed {allowed:g}"
        )
        if spread > allowed:
            detail += f"; not judged, for the reference's own errors spread over {spread:.1f} ulp"
        elif agreeing:
            detail += f"; as much that way in {sum(agreeing)} of {len(agreeing)} more draws"
            detail += "" if wrong else ": one number that all elements share is rounded, which goes either way"
        return Finding(
            check=self.name,
            tensor=item.tensor,
            verdict=Verdict.FAIL if wrong else Verdict.PASS,
            law=self.law,
            detail=detail,
            looks_like=_meaning(way, mean) if wrong else "",
            numbers={
                "bias": mean,
                "bias_error": error,
                "reference_outward": reference.outward,
                "reference_upward": reference.upward,
            },
        )

    def controls(self) -> tuple[Control, ...]:
        def means(outward: float, error: float = 0.005, by_rows: float = 0.0) -> Means:
            return Means(
                count=4096, distinct=64, outward=outward, outward_error=error, upward=0.0, upward_error=error,
                outward_by_rows=by_rows,
            )  # fmt: skip

        even = means(0.001)
        shifted, steady, noisy = means(20.0, error=0.3), means(0.1, error=0.05), means(0.1, error=0.3)
        rows = (
            ("20 ulp away from zero", Verdict.FAIL, shifted, steady, "float32"),
            ("the reference's errors spread over 19 ulp", Verdict.PASS, shifted, noisy, "float32"),
            ("rounds to nearest", Verdict.PASS, means(-0.004), even, "bfloat16"),
            ("truncates: half an ulp towards zero", Verdict.FAIL, means(-0.5), even, "bfloat16"),
            ("the reference has the same bias", Verdict.PASS, means(-0.5), means(-0.48), "bfloat16"),
            ("less of it than the reference", Verdict.PASS, means(-0.15), means(-0.42), "bfloat16"),
            ("as much of it, the other way", Verdict.PASS, means(-0.16), means(0.14), "bfloat16"),
            ("far more of it than the reference", Verdict.FAIL, means(-0.5), means(0.14), "bfloat16"),
            ("a few rows of which each is off as one", Verdict.PASS, means(-0.2, by_rows=0.05), even, "bfloat16"),
            ("all rows are off alike", Verdict.FAIL, means(-0.5, by_rows=0.01), even, "bfloat16"),
            ("too few elements to tell", Verdict.PASS, means(-0.2, error=0.05), even, "bfloat16"),
        )
        plain = tuple(
            Control(
                name=name,
                expect=expect,
                subject=example(dtype=dtype),
                seen={Compare(): Returned(evidence=Compared(tensors=(_measured(target, reference, dtype),)))},
            )
            for name, expect, target, reference, dtype in rows
        )
        more = (
            ("the same in every draw", Verdict.FAIL, (-0.5, -0.49, -0.5, -0.48, -0.5)),
            ("one way in one draw, the other in the next", Verdict.PASS, (-0.5, 0.22, -0.13, 0.0, 0.24)),
            ("gone in one of the draws", Verdict.PASS, (-0.5, -0.49, 0.0, -0.48, -0.5)),
        )
        return plain + tuple(
            Control(
                name=name,
                expect=expect,
                subject=example(dtype="bfloat16"),
                seen={
                    Compare(): Returned(evidence=Compared(tensors=(_measured(means(-0.5), even, "bfloat16"),))),
                    CONFIRMING: Returned(
                        evidence=Redrawn(draws=tuple((_measured(means(way), even, "bfloat16"),) for way in ways))
                    ),
                },
            )
            for name, expect, ways in more
        )


def _measured(target: Means, reference: Means, dtype: str) -> Measured:
    return Measured(
        tensor="out", dtype=dtype, shape=(32, 128), judged=4096, bias=target, reference_bias=reference
    )  # fmt: skip


def _judged(subject: Subject, seen: Seen, limits: LimitsOf) -> Iterator[tuple[Measured, float]]:
    """Yield the tensors that have enough elements for a mean, with the largest one allowed."""
    evidence = compared(seen)
    for item in evidence.tensors if evidence else ():
        # What a constant upstream gradient cancels to is noise, and its sign is whoever's.
        noise = item.tensor.startswith("grad ") and revalues_gradient(subject.case.layouts)
        if item.bias is not None and item.reference_bias is not None and not noise:
            yield item, limits(item.dtype).max_bias.of(item.dtype)


def _worst_way(item: Measured, allowed: float) -> tuple[str, float, float, float]:
    """Return the way in which a tensor is the most biased, its mean and standard error, and the reference's mean."""
    target, reference = _means(item)
    ways = (
        (OUTWARD, target.outward, max(target.outward_error, target.outward_by_rows), reference.outward),
        (UPWARD, target.upward, max(target.upward_error, target.upward_by_rows), reference.upward),
    )
    return max(ways, key=lambda each: _excess(each[1], each[2], each[3], allowed))


def _agrees(other: Measured, way: str, mean: float, allowed: float) -> bool:
    """Say whether another draw is as biased, in the same direction."""
    target, reference = (means.outward if way == OUTWARD else means.upward for means in _means(other))
    return target * mean > 0 and _excess(target, 0.0, reference, allowed) > 0


def _means(item: Measured) -> tuple[Means, Means]:
    """Return the target's means and the reference's, of a tensor that has them."""
    if item.bias is None or item.reference_bias is None:
        raise ValueError(f"{item.tensor} has too few elements for a mean")
    return item.bias, item.reference_bias


def _spread(reference: Means) -> float:
    """Return the standard deviation of the reference's errors, in ulps.

    Beyond the limit they are not roundings of the results but of a statistic, such as the mean of a row far from 0:
    every element of the row is then off by the same amount, and a few rows have a mean of their own by chance.
    """
    return reference.upward_error * math.sqrt(reference.count)


def _excess(mean: float, error: float, reference: float, allowed: float) -> float:
    """Return by how much a bias is too large: significant, and beyond the limit on top of the reference's own.

    The sign of the reference's bias does not matter: a statistic of a row that is rounded once moves the whole row
    one way or the other, whichever way the roundings before it went.
    """
    if abs(mean) <= SIGNIFICANT * error:
        return 0.0
    return max(0.0, abs(mean) - abs(reference) - allowed)


def _meaning(way: str, mean: float) -> str:
    if way == UPWARD:
        return f"rounding {'up' if mean > 0 else 'down'} instead of to nearest, or a constant that is added"
    if mean < 0:
        return "truncation instead of rounding to nearest, or terms that are dropped"
    return "rounding away from zero, or terms that are counted twice"


check = Bias()
