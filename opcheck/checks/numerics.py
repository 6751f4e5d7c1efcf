"""The reference-relative gate: the target may be about as far from golden as eager code in the same dtype is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from opcheck.checks.gate import GateLimits, place, sibling_errors, siblings_for, threshold_of
from opcheck.checks.order_of_sum import order_explains, wanted_beyond
from opcheck.checks.protocol import Control, LimitsOf, Seen, Subject, against_golden, answered, compared, example
from opcheck.checks.without_gate import (
    condition_number,
    judged_without_gate,
    pictures_without_gate,
    wanted_without_gate,
)  # fmt: skip
from opcheck.core.conditioning import Condition, Conditioned, Errors, Kappa
from opcheck.core.finding import Finding
from opcheck.core.laws import Threshold
from opcheck.core.measured import Element, Measured
from opcheck.core.outcome import (
    Compare,
    Compared,
    Locate,
    Located,
    OracleError,
    OracleErrors,
    Returned,
    Siblings,
    Trial,
)  # fmt: skip
from opcheck.core.pictures import Picture
from opcheck.core.policy import Existing
from opcheck.core.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericsLimits(GateLimits):
    """Limits of `numerics`."""


class Numerics:
    """The law of numerics."""

    name: ClassVar[str] = "numerics"
    law: ClassVar[str] = (
        "The target is about as near to golden as the reference is: within the fudge factor times its error, plus the "
        "rounding floor."
    )
    requires: ClassVar[frozenset[str]] = frozenset({"structure"})
    limits: ClassVar[type] = NumericsLimits

    def applies(self, subject: Subject) -> str:
        return against_golden(subject)

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        evidence = compared(seen)
        if evidence is None:
            return (Compare(),)
        trial = siblings_for(evidence, subject.case)
        if trial is not None and trial not in seen:
            return (trial,)
        wanted: list[Trial] = []
        for item in _judged(evidence):
            gate = threshold_of(item, sibling_errors(seen, evidence, subject.case, item.tensor), limits(item.dtype))
            if item.target_error <= gate.absolute_floor:
                continue
            if not gate.gate_valid:
                wanted += wanted_without_gate(item, gate, subject.case)
            elif item.target_error > gate.value:
                wanted += wanted_beyond(item, gate, subject, seen)
        return tuple(dict.fromkeys(wanted))

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        evidence = compared(seen)
        if evidence is None:
            return ()
        findings = []
        for item in _judged(evidence):
            gate = threshold_of(item, sibling_errors(seen, evidence, subject.case, item.tensor), limits(item.dtype))
            findings.append(self._judge(subject, item, gate, seen))
        return tuple(findings)

    def _judge(self, subject: Subject, item: Measured, gate: Threshold, seen: Seen) -> Finding:
        existing = subject.contract.existing.get(item.dtype)
        looks_like, pictures = "", tuple[Picture, ...]()
        if not gate.gate_valid and item.target_error > gate.absolute_floor:
            verdict, detail = judged_without_gate(item, gate, subject.case, seen)
            pictures = pictures_without_gate(item, gate, seen)
        elif item.target_error <= gate.value:
            verdict = Verdict.PASS
            detail = f"measured {item.target_error:.1e}, allowed {gate.value:.1e} ({gate.parts})"
        elif order := order_explains(item, gate, subject, seen):
            verdict = Verdict.PASS_WITH_LIMITATIONS
            detail = f"measured {item.target_error:.1e}, the gate allows {gate.value:.1e} ({gate.parts}); {order}"
        else:
            verdict = Verdict.FAIL
            located = answered(seen, Locate(tensor=item.tensor, threshold=gate.value))
            detail = f"measured {item.target_error:.1e}, allowed {gate.value:.1e} ({gate.parts}), {_worst(item)}"
            if isinstance(located, Located):
                detail += f"; {located.where}"
                looks_like, pictures = located.looks_like, located.pictures
        if existing is not None:
            verdict, detail = _with_existing(verdict, detail, item, existing)
        factor = f"{gate.fudge_factor:g}x"
        law = f"The target is at most {factor} as far from golden as the reference is, plus the rounding floor."
        return Finding(
            check=self.name, tensor=item.tensor, verdict=verdict, law=law, detail=detail, looks_like=looks_like,
            numbers={**_numbers(item, gate), **condition_number(item, gate, seen)}, pictures=pictures,
        )  # fmt: skip

    def controls(self) -> tuple[Control, ...]:
        worst = (Element(index=(2, 128), golden=1.0, reference=1.0002, target=1.00093),)

        def item(dtype: str, target: float, reference: float, floor: float = 0.0) -> Measured:
            return Measured(
                tensor="out", dtype=dtype, shape=(3, 129), judged=387, scale=1.0, worst=worst,
                target_error=target, reference_error=reference, rounding_floor=floor,
            )  # fmt: skip

        right = item("float16", 4.3e-4, 2.0e-4, 3.1e-5)
        wrong = item("float16", 4.4e-4, 2.0e-4, 3.1e-5)
        wide = item("float32", 9.0e-7, 1e-8)
        far = item("float16", 0.3, 0.2)
        noisy = OracleError(tensor="out", reference_error=3e-7, rounding_floor=0.0, scale=1.0, judged=3096)
        siblings: Seen = {Siblings(count=8): Returned(evidence=OracleErrors(tensors=(noisy,), draws=8))}
        rows: tuple[tuple[str, Verdict, Measured, Seen], ...] = (
            ("as far as allowed: 2 x 2.0e-4 + 3.1e-5", Verdict.PASS, right, {}),
            ("just beyond it", Verdict.FAIL, wrong, {}),
            ("float32, one lucky draw of the reference", Verdict.FAIL, wide, {}),
            ("float32, the reference's noise over 8 seeds", Verdict.PASS, wide, siblings),
            ("gate invalid, no evidence", Verdict.INCONCLUSIVE, far, {}),
            ("gate invalid, noise as large as the reference's", Verdict.PASS_WITH_LIMITATIONS, far, _errors(1.0)),
            ("gate invalid, a mean of twice the reference's noise", Verdict.FAIL, far, _errors(1.0, mean=2.0)),
            ("gate invalid, larger noise of unknown origin", Verdict.INCONCLUSIVE, far, _errors(9.0)),
            ("gate invalid, well conditioned", Verdict.INCONCLUSIVE, far, _errors(1.0, kappa=1.0)),
        )
        return tuple(
            Control(
                name=name, expect=expect, subject=example(dtype=row.dtype),
                seen={Compare(): Returned(evidence=Compared(tensors=(row,))), **more},
            )
            for name, expect, row, more in rows
        )  # fmt: skip


def _errors(rms: float, mean: float = 0.0, kappa: float = 1e4) -> Seen:
    """Return evidence of a target whose errors have this RMS and mean, in units of the reference's RMS error."""
    noise = [0.1 * (-1) ** at for at in range(16)]
    along = tuple((item, 1.0) for item in noise)
    reference = Errors(rms=1.0, largest=3.0, upward=tuple(noise), outward=tuple(noise), along=along)
    shifted = tuple(mean + item for item in noise)
    target = Errors(rms=rms, largest=3.0 * rms, upward=shifted, outward=tuple(noise), along=along)
    known = Kappa(of="inputs", value=kappa, index=(2, 128), quotient=0.2, perturbed=1.0, unit=2.0**-11)
    found = Conditioned(tensor="out", kappa=known, distinct=16, samples=6192, reference=reference, target=target)
    return {Condition(tensor="out", seeds=16, beyond=2.0): Returned(evidence=found)}


def _judged(evidence: Compared) -> tuple[Measured, ...]:
    return tuple(item for item in evidence.tensors if not item.exact and item.judged)


def _worst(item: Measured) -> str:
    return f"worst {place(item.worst[0])}" if item.worst else ""


def _numbers(item: Measured, gate: Threshold) -> dict[str, float]:
    return {
        "reference_error": gate.reference_error,
        "target_error": item.target_error,
        "reference_relative_error": gate.reference_relative_error,
        "rounding_floor": gate.rounding_floor,
        "absolute_floor": gate.absolute_floor,
        "threshold": gate.value,
        "protocol_threshold": gate.protocol,
        "fudge_factor": gate.fudge_factor,
        "gate_valid": float(gate.gate_valid),
        "scale": gate.scale,
        "judged": float(item.judged),
    }


def _with_existing(verdict: Verdict, detail: str, item: Measured, existing: Existing) -> tuple[Verdict, str]:
    """Hold the target to the op's own tolerance too; it may also carry a target that the gate alone would not."""
    form = f"the declared tolerance (atol {existing.atol:g}, rtol {existing.rtol:g})"
    if item.existing_excess > 1.0:
        return Verdict.FAIL, f"{detail}; {form} is exceeded {item.existing_excess:.2g} times"
    if verdict is Verdict.FAIL:
        return Verdict.PASS_WITH_LIMITATIONS, f"{detail}; accepted on {form}: {existing.reason}"
    return verdict, detail


check = Numerics()
