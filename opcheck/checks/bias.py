"""Errors that all go one way: a kernel that truncates is within every tolerance and wrong on average."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, against_golden, compared, example
from opcheck.core.finding import Finding
from opcheck.core.layouts import revalues_gradient
from opcheck.core.measured import Bias as Means
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compare, Compared, Returned, Trial
from opcheck.core.policy import WIDE, ByWidth, limit
from opcheck.core.verdict import Verdict

SIGNIFICANT = 6.0  # standard errors: one false alarm in 10^9 comparisons of unbiased errors


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
        return (Compare(),) if compared(seen) is None else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        found = []
        for item in evidence.tensors if evidence else ():
            # What a constant upstream gradient cancels to is noise, and its sign is whoever's.
            noise = item.tensor.startswith("grad ") and revalues_gradient(subject.case.layouts)
            if item.bias is not None and item.reference_bias is not None and not noise:
                allowed = limits(item.dtype).max_bias.of(item.dtype)
                found.append(self._judge(item, item.bias, item.reference_bias, allowed))
        return tuple(found)

    def _judge(self, item: Measured, target: Means, reference: Means, allowed: float) -> Finding:
        ways = (
            ("away from zero", target.outward, max(target.outward_error, target.outward_by_rows), reference.outward),
            ("upwards", target.upward, max(target.upward_error, target.upward_by_rows), reference.upward),
        )
        way, mean, error, beside = max(ways, key=lambda each: _excess(each[1], each[2], each[3], allowed))
        spread = _spread(reference) if item.dtype in WIDE else 0.0
        wrong = spread <= allowed and _excess(mean, error, beside, allowed) > 0
        detail = (
            f"mean signed error {way} {mean:+.3f} ulp (standard error {error:.4f}) over {target.count} elements, "
            f"the reference's {beside:+.3f}, allowed {allowed:g}"
        )
        if spread > allowed:
            detail += f"; not judged, for the reference's own errors spread over {spread:.1f} ulp"
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
        return tuple(
            Control(
                name=name,
                expect=expect,
                subject=example(dtype=dtype),
                seen={
                    Compare(): Returned(
                        evidence=Compared(
                            tensors=(
                                Measured(
                                    tensor="out", dtype=dtype, shape=(32, 128), judged=4096, bias=target,
                                    reference_bias=reference,
                                ),
                            )
                        )
                    )
                },
            )
            for name, expect, target, reference, dtype in rows
        )  # fmt: skip


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
    if way == "upwards":
        return f"rounding {'up' if mean > 0 else 'down'} instead of to nearest, or a constant that is added"
    if mean < 0:
        return "truncation instead of rounding to nearest, or terms that are dropped"
    return "rounding away from zero, or terms that are counted twice"


check = Bias()
