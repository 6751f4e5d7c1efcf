"""Turn a target's tensors into evidence and let the checks themselves judge it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from benchmarks.calibration.kernel import Op, Tensors
from opcheck.checks import bias, numerics, slices, structure, ulp
from opcheck.checks.gate import sibling_errors, siblings_for, threshold_of
from opcheck.checks.protocol import Check, Seen, Subject
from opcheck.core.case import Case, Dims
from opcheck.core.formats import format_of
from opcheck.core.laws import FEW_ELEMENTS, Threshold
from opcheck.core.measure import measure, measure_oracle
from opcheck.core.measured import Measured
from opcheck.core.outcome import (
    Compare,
    Compared,
    ElementErrors,
    Elementwise,
    OracleError,
    OracleErrors,
    Returned,
)  # fmt: skip
from opcheck.core.policy import WIDE, Contract
from opcheck.core.verdict import Verdict
from opcheck.run.elements import element_errors
from opcheck.run.pooling import pooled

# In the order in which an audit asks them: the first that fails is the one that caught it.
LAWS: dict[str, Check] = {
    "structure": structure.check,
    "numerics": numerics.check,
    "slices": slices.check,
    "ulp": ulp.check,
    "bias": bias.check,
}
Limits = Mapping[str, Any]  # limits by the law's name, where they differ from the law's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one law says of one tensor: `ratio` is measured over allowed, above 1 exactly where it fails."""

    law: str
    tensor: str
    verdict: Verdict
    ratio: float
    detail: str = ""


@dataclass(slots=True, kw_only=True)
class Oracle:
    """Golden and one reference on a batch; the errors of each draw are measured once, when a case asks for them."""

    golden: Tensors
    reference: Tensors
    conditions: Tensors = field(default_factory=dict)
    _errors: dict[int, tuple[OracleError, ...]] = field(default_factory=dict)

    def errors(self, at: int) -> tuple[OracleError, ...]:
        """Return the reference's errors on draw `at`, one per tensor."""
        if at not in self._errors:
            found = (measure_oracle(name, self.reference[name][at], self.golden[name][at]) for name in self.golden)
            self._errors[at] = tuple(item for item in found if item is not None)
        return self._errors[at]

    def siblings(self, at: int, count: int) -> OracleErrors:
        """Return the maxima over `count` draws other than `at`, as many as there are."""
        size = next(iter(self.golden.values())).shape[0]
        others = [(at + step) % size for step in range(1, min(count, size - 1) + 1)]
        return OracleErrors(tensors=pooled(item for other in others for item in self.errors(other)), draws=len(others))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One case: its subject, its oracle, and the draw that it is."""

    op: Op
    subject: Subject
    oracle: Oracle
    at: int

    def measured(self, target: Tensors) -> Compared:
        """Measure the tensors of a target `[*S]` that the oracle has too."""
        return Compared(
            tensors=tuple(
                measure(
                    name, value, self.oracle.reference[name][self.at], self.oracle.golden[name][self.at],
                    gradient=name.startswith("grad "), overflow=self.op.overflow,
                )
                for name, value in target.items()
            )
        )  # fmt: skip

    def seen(self, target: Tensors, evidence: Compared, limits: Limits) -> Seen:
        """Return all evidence that the laws ask for."""
        found: dict[Any, Any] = {Compare(): Returned(evidence=evidence)}
        if (trial := siblings_for(evidence, self.subject.case)) is not None:
            found[trial] = Returned(evidence=self.oracle.siblings(self.at, trial.count))
        for trial in ulp.check.plan(self.subject, found, limits_of("ulp", limits)) if self._elementwise else ():
            if isinstance(trial, Elementwise):
                found[trial] = Returned(evidence=self._elements(target, trial.max_ulp))
        return found

    def judged(self, target: Tensors, seen: Seen, limits: Limits, laws: tuple[str, ...]) -> list[Judgement]:
        """Let each law judge, and check that its verdict and its ratio say the same."""
        evidence = seen[Compare()].evidence  # type: ignore[union-attr]
        found = []
        for law in laws:
            check = LAWS[law]
            if check.applies(self.subject):
                continue
            given = limits_of(law, limits)
            for finding in check.judge(self.subject, seen, given):
                item = evidence.find(finding.tensor)
                ratio = _RATIOS[law](item, seen, self.subject.case, given(item.dtype))
                failed = finding.verdict is Verdict.FAIL
                if law != "structure" and finding.verdict is not Verdict.INCONCLUSIVE and failed != (ratio > 1.0):
                    raise AssertionError(f"{law} of {self.subject.case.id} {finding.tensor}: {ratio} but {finding}")
                found.append(
                    Judgement(
                        law=law, tensor=finding.tensor, verdict=finding.verdict, ratio=ratio, detail=finding.detail
                    )
                )
        return found

    def gate(self, item: Measured, seen: Seen) -> Threshold:
        """Return the threshold that numerics held a tensor to."""
        evidence: Compared = seen[Compare()].evidence  # type: ignore[union-attr, assignment]
        drawn = sibling_errors(seen, evidence, self.subject.case, item.tensor)
        return threshold_of(item, drawn, limits_of("numerics", {})(item.dtype))

    @property
    def _elementwise(self) -> bool:
        return self.op.kind == "elementwise" and bool(self.oracle.conditions)

    def _elements(self, target: Tensors, max_ulp: float) -> ElementErrors:
        own = self.oracle
        return ElementErrors(
            tensors=tuple(
                element_errors(name, value, own.reference[name][self.at], own.golden[name][self.at],
                               own.conditions[name][self.at], max_ulp)
                for name, value in target.items()
                if name in own.conditions
            )
        )  # fmt: skip


def subject_of(op: Op, sizes: Mapping[str, int], dtype: str, values: str, seed: int, backend: str) -> Subject:
    """Return what the checks are asked about; the seed stands for a batch of draws."""
    contract = Contract(name=f"bench::{op.name}", kind=op.kind, dtypes=op.dtypes, dims=tuple(sizes))
    case = Case(op=contract.name, dtype=dtype, dims=Dims(sizes), values=values, seed=seed, backend=backend)
    return Subject(contract=contract, case=case)


def limits_of(law: str, limits: Limits) -> Callable[[str], Any]:
    """Return a law's limits for an element type: those given, else its own."""
    given = limits.get(law) or LAWS[law].limits()
    return lambda dtype: given


def _structure(item: Measured, seen: Seen, case: Case, limits: Any) -> float:
    allowed = threshold_of(item, _drawn(item, seen, case), limits).value
    return item.overflow_gap / allowed if item.overflow_gap and allowed else 0.0


def _numerics(item: Measured, seen: Seen, case: Case, limits: Any) -> float:
    gate = threshold_of(item, _drawn(item, seen, case), limits)
    return _over(item.target_error, gate.value)


def _slices(item: Measured, seen: Seen, case: Case, limits: Any) -> float:
    drawn = _drawn(item, seen, case)
    factor, found = limits.slice_factor.of(item.dtype), 0.0
    least = slices.LEAST_WIDE_QUOTIENT * format_of(item.dtype).unit if item.dtype in WIDE else 0.0
    for axis in item.slices:
        if axis.judged_share >= slices.FEWEST_JUDGED:
            reference = max(axis.reference_quotient, drawn.slices.get(axis.axis, 0.0) if drawn else 0.0, least)
            found = max(found, _over(axis.target_quotient, factor * reference))
    return found


def _ulp(item: Measured, seen: Seen, case: Case, limits: Any) -> float:
    if item.dtype in WIDE and item.judged < FEW_ELEMENTS:
        return 0.0
    plain = max(limits.max_ulp, item.reference_max_ulp if item.dtype not in WIDE else 0.0)
    for outcome in seen.values():
        if isinstance(outcome, Returned) and isinstance(outcome.evidence, ElementErrors):
            detailed = outcome.evidence.find(item.tensor)
            if detailed is not None and item.max_ulp > plain:
                return detailed.excess
    return _over(item.max_ulp, plain)


def _bias(item: Measured, seen: Seen, case: Case, limits: Any) -> float:
    target, reference = item.bias, item.reference_bias
    if target is None or reference is None:
        return 0.0
    allowed = limits.max_bias.of(item.dtype)
    if item.dtype in WIDE and reference.upward_error * math.sqrt(reference.count) > allowed:
        return 0.0
    ways = (
        (target.outward, max(target.outward_error, target.outward_by_rows), reference.outward),
        (target.upward, max(target.upward_error, target.upward_by_rows), reference.upward),
    )
    return max(
        min(_over(abs(mean), bias.SIGNIFICANT * error), _over(max(abs(mean) - abs(other), 0.0), allowed))
        for mean, error, other in ways
    )


def _drawn(item: Measured, seen: Seen, case: Case) -> OracleError | None:
    evidence: Compared = seen[Compare()].evidence  # type: ignore[union-attr, assignment]
    return sibling_errors(seen, evidence, case, item.tensor)


def _over(measured: float, allowed: float) -> float:
    return 0.0 if not measured else measured / allowed if allowed else math.inf


_RATIOS: dict[str, Callable[[Measured, Seen, Case, Any], float]] = {
    "structure": _structure,
    "numerics": _numerics,
    "slices": _slices,
    "ulp": _ulp,
    "bias": _bias,
}


def split(tensors: Tensors, at: int) -> Tensors:
    """Return the tensors of one draw."""
    return {name: value[at] for name, value in tensors.items()}


def to_cpu(tensors: Mapping[str, Tensor]) -> Tensors:
    """Return the tensors where they are measured."""
    return {name: value.detach().cpu() for name, value in tensors.items()}
