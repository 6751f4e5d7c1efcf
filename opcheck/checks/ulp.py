"""Elementwise kernels: every element within a few units in the last place of golden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.gate import place
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, against_golden, answered, compared, example
from opcheck.core.finding import Finding
from opcheck.core.laws import FEW_ELEMENTS
from opcheck.core.measured import Element, Measured
from opcheck.core.outcome import Compare, Compared, ElementErrors, ElementErrorsOf, Elementwise, Returned, Trial
from opcheck.core.policy import WIDE, limit
from opcheck.core.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class UlpLimits:
    """Limits of `ulp`."""

    max_ulp: float = limit(2.0, "Largest error of an element, in units in the last place of golden.")


class Ulp:
    """The law of elementwise accuracy."""

    name: ClassVar[str] = "ulp"
    law: ClassVar[str] = (
        "Every element of an elementwise op is within {limit:g} ulp of golden, inputs' rounding allowed for."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"structure", "numerics"})
    limits: ClassVar[type] = UlpLimits

    def applies(self, subject: Subject) -> str:
        if subject.contract.kind != "elementwise":
            return f"the op's kind is {subject.contract.kind}"
        return against_golden(subject)

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        doubtful = any(
            item.max_ulp > max(limits(item.dtype).max_ulp, 0.0 if item.dtype in WIDE else item.reference_max_ulp)
            for item in _elementwise(evidence)
        )
        return (_trial(limits),) if doubtful else ()

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        errors = answered(seen, _trial(limits))
        found = []
        for item in _elementwise(evidence) if evidence else ():
            allowed: float = limits(item.dtype).max_ulp
            detailed = errors.find(item.tensor) if isinstance(errors, ElementErrors) else None
            found.append(self._judge(item, allowed, detailed))
        return tuple(found)

    def _judge(self, item: Measured, allowed: float, detailed: ElementErrorsOf | None) -> Finding:
        figures = (
            f"measured {item.max_ulp:.3g} ulp, allowed {allowed:g}; the reference has {item.reference_max_ulp:.3g}"
        )
        verdict, detail = Verdict.PASS, figures
        if item.max_ulp > allowed and item.dtype in WIDE:
            if detailed is None:
                verdict, detail = Verdict.INCONCLUSIVE, f"{figures}; golden is not elementwise where the op's kind is"
            elif detailed.wrong and item.judged < FEW_ELEMENTS:
                detail = f"{figures}; too few elements to know the reference's error nearby, so numerics alone decides"
            elif detailed.wrong:
                verdict = Verdict.FAIL
                detail = (
                    f"{detailed.wrong} of {item.numel} elements are further than their inputs' rounding explains, the "
                    f"worst {detailed.excess:.3g} times the allowance, {place(detailed.worst)}"
                )
            elif detailed.on_reference:
                detail = f"{figures}; {detailed.on_reference} elements accepted on the reference's evidence"
            else:
                detail = f"{figures}; the inputs' own rounding explains it"
        elif item.max_ulp > allowed:
            verdict = Verdict.FAIL
            detail = f"{figures}, {place(item.max_ulp_at)}" if item.max_ulp_at else figures
            if item.max_ulp <= item.reference_max_ulp:
                verdict, detail = Verdict.PASS, f"{figures}; accepted on the reference's evidence"
            elif detailed is not None and not detailed.wrong:
                verdict, detail = Verdict.PASS, f"{figures}; FP32's own rounding explains it"
        return Finding(
            check=self.name,
            tensor=item.tensor,
            verdict=verdict,
            law=f"Every element of an elementwise op is within {allowed:g} ulp of golden, its inputs' rounding aside.",
            detail=detail,
            numbers={"max_ulp": item.max_ulp, "reference_max_ulp": item.reference_max_ulp},
        )

    def controls(self) -> tuple[Control, ...]:
        def item(dtype: str, ulps: float, reference: float = 0.5, judged: int = 387) -> Measured:
            return Measured(
                tensor="out", dtype=dtype, shape=(3, 129), judged=judged, max_ulp=ulps, reference_max_ulp=reference
            )

        where = Element(index=(2, 128), golden=1.0, reference=1.0, target=1.1)

        def seen(measured: Measured, wrong: int | None = None, on_reference: int = 0) -> Seen:
            first: Seen = {Compare(): Returned(evidence=Compared(tensors=(measured,)))}
            if wrong is None:
                return first
            answer = ElementErrorsOf(tensor="out", wrong=wrong, on_reference=on_reference, excess=3.0, worst=where)
            return {**first, Elementwise(max_ulp=2.0): Returned(evidence=ElementErrors(tensors=(answer,)))}

        rows = (
            ("half an ulp", Verdict.PASS, seen(item("bfloat16", 0.5))),
            ("three ulps", Verdict.FAIL, seen(item("bfloat16", 3.0))),
            ("three ulps in the far tail, below FP32's own rounding", Verdict.PASS, seen(item("bfloat16", 3.0), 0)),
            ("three ulps, above it", Verdict.FAIL, seen(item("bfloat16", 3.0), 5)),
            ("three ulps, as the reference", Verdict.PASS, seen(item("bfloat16", 3.0, reference=3.0))),
            ("float32, 40 ulps that ill-conditioned inputs explain", Verdict.PASS, seen(item("float32", 40.0), 0)),
            ("float32, 40 ulps that the reference has too", Verdict.PASS, seen(item("float32", 40.0), 0, 12)),
            ("float32, 40 ulps that nothing explains", Verdict.FAIL, seen(item("float32", 40.0), 5)),
            ("float32, 40 ulps, fewer than 64 elements", Verdict.PASS, seen(item("float32", 40.0, judged=63), 5)),
        )
        return tuple(
            Control(name=name, expect=expect, subject=example("elementwise"), seen=evidence)
            for name, expect, evidence in rows
        )


def _trial(limits: LimitsOf) -> Elementwise:
    return Elementwise(max_ulp=float(limits("float32").max_ulp))


def _elementwise(evidence: Compared) -> list[Measured]:
    """Return the outputs, and the gradients that have an output's shape: those of broadcast inputs are sums."""
    shapes = {item.shape for item in evidence.tensors if not item.tensor.startswith("grad ")}
    return [item for item in evidence.tensors if not item.exact and item.judged and item.shape in shapes]


check = Ulp()
