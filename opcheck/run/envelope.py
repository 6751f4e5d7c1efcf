"""Signed errors of reference and target over many seeds: the envelope in which the target's must lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.conditioning import Condition, Conditioned, Errors, decide
from opcheck.core.depicted import MOST_ELEMENTS
from opcheck.core.depicting import Trio, counted, error_map
from opcheck.core.floats import ulp, upcast_exact
from opcheck.core.formats import format_of
from opcheck.core.measure import dtype_name
from opcheck.core.outcome import Role
from opcheck.core.pictures import Picture
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.core.verdict import Verdict
from opcheck.run.axes import axis_names
from opcheck.run.growth import growth_of
from opcheck.run.inputs import seeded
from opcheck.run.kappa import kappa_of, terms_of
from opcheck.run.orders import moved
from opcheck.run.roles import Run

ORDERS = 3  # random ones
TERM_ROUNDINGS = 4  # of a fast exponential, or of a product of factors
KEPT = 1 << 16  # signed errors that are counted for the picture, of the first seeds

#: Runs a role on a case.
Runs = Callable[[Case, Role], Run]


@dataclass(slots=True)
class _Sums:
    """What is kept of one implementation's errors, in the unit of the tensor."""

    count: int = 0
    square: float = 0.0
    largest: float = 0.0
    upward: list[float] = field(default_factory=list)
    outward: list[float] = field(default_factory=list)
    along: list[tuple[float, float]] = field(default_factory=list)
    explained: float = 0.0
    explained_at: float = 0.0
    kept: list[Tensor] = field(default_factory=list)

    def add(self, error: Tensor, golden: Tensor, bound: Tensor | None) -> None:
        """Take the errors `[n]` of one seed; `bound` `[n]` is what a sum in some order may have."""
        self.count += error.numel()
        self.square += float(error.square().sum())
        if not self.kept or self.count <= KEPT:
            self.kept.append(error[:KEPT].clone())
        self.largest = max(self.largest, float(error.abs().max()))
        self.upward.append(float(error.mean()))
        self.outward.append(float((error * golden.sign()).mean()))
        self.along.append((float((error * golden).sum()), float(golden.square().sum())))
        if bound is not None:
            ratio = error.abs() / bound
            self.explained += float(ratio.square().sum())
            self.explained_at = max(self.explained_at, float(ratio.max()))

    def errors(self, unit: float, *, bounded: bool) -> Errors:
        """Return the statistics in `unit`."""
        return Errors(
            rms=math.sqrt(self.square / self.count) / unit,
            largest=self.largest / unit,
            upward=tuple(item / unit for item in self.upward),
            outward=tuple(item / unit for item in self.outward),
            along=tuple(self.along),
            explained=math.sqrt(self.explained / self.count) if bounded else math.nan,
            explained_at=self.explained_at if bounded else math.nan,
        )


def conditioned(
    spec: OpSpec, contract: Contract, siblings: Iterable[Case], device: torch.device, trial: Condition, runs: Runs
) -> Conditioned:
    """Run golden, reference and target on a case and its siblings, and return what their errors on one tensor say.

    Args:
        siblings: The case, then the cases with other seeds.

    Raises:
        RoleFailed: A role raised.
        OracleError: Golden narrowed.
    """
    cases, name = list(siblings), trial.tensor
    sums: dict[Role, _Sums] = {"reference": _Sums(), "target": _Sums()}
    goldens, terms_count = set[float](), 0
    bounded, kappa, first = True, None, None
    for case in cases:
        golden = runs(case, "golden")
        reference = runs(case, "reference").tensors[name]
        target = runs(case, "target").tensors[name]
        terms = terms_of(spec, case, device).get(name)
        if kappa is None:
            kappa = kappa_of(spec, case, device, name, reference, golden, terms)
        truth = golden.tensors[name].detach().double()
        if first is None:
            first = Trio(
                tensor=name, target=upcast_exact(target.detach()), reference=upcast_exact(reference.detach()),
                golden=truth, dtype=dtype_name(target.dtype), axes=axis_names(name, tuple(truth.shape), golden),
                tiles=contract.tiles,
            )  # fmt: skip
        judged, parts = _judged(truth, reference, target)
        if not int(judged.sum()):
            continue
        bound = _bound(terms, truth, target, contract) if terms is not None and not kappa.problem else None
        bounded = bounded and bound is not None
        terms_count = max(terms_count, terms.shape[-1] if terms is not None else 0)
        goldens.add(float(truth[judged].sum()))
        for role, value in parts.items():
            sums[role].add((value - truth)[judged], truth[judged], None if bound is None else bound[judged])
    assert kappa is not None and first is not None  # noqa: PT018 - they are set together
    unit = math.sqrt(sums["reference"].square / max(sums["reference"].count, 1)) or 1.0
    orders = moved(spec, contract, cases[0], device, name)
    found = {
        role: replace(each.errors(unit, bounded=bounded), moved=orders[role] / unit) for role, each in sums.items()
    }
    answer = Conditioned(
        tensor=name, kappa=kappa, distinct=len(goldens), samples=sums["target"].count, terms=terms_count,
        reference=found["reference"], target=found["target"], pictures=_pictures(first, sums, unit),
    )  # fmt: skip
    if found["target"].rms <= trial.beyond or decide(answer, most_rms=trial.beyond)[0] is Verdict.FAIL:
        return answer
    return replace(answer, growth=growth_of(spec, contract, cases[0], device, name, runs))


def _pictures(first: Trio, sums: Mapping[Role, _Sums], unit: float) -> tuple[Picture, ...]:
    """Return the errors on the first seed as a map, and those of all seeds counted, in the reference's RMS error."""
    words, small = "the reference's RMS error", first.golden.numel() <= MOST_ELEMENTS
    target, reference = ([item / unit for item in kept] for kept in (sums["target"].kept, sums["reference"].kept))
    return (error_map(first, unit, words), counted(target, reference, words)) if target and small else ()


def _judged(golden: Tensor, reference: Tensor, target: Tensor) -> tuple[Tensor, dict[Role, Tensor]]:
    parts: dict[Role, Tensor] = {"reference": upcast_exact(reference.detach()), "target": upcast_exact(target.detach())}
    judged = golden.isfinite() & parts["reference"].isfinite() & parts["target"].isfinite()
    return judged, parts


def _bound(terms: Tensor, golden: Tensor, target: Tensor, contract: Contract) -> Tensor:
    """Return the standard deviation `[*S]` of the error of a sum of these terms, one after the other.

    Each partial sum S_k is rounded, by up to u of it and uniformly: the variance is `u^2 / 3 sum S_k^2`. Of the terms'
    own order and some random ones the largest counts; trees and lanes have less. Each term has `TERM_ROUNDINGS` of its
    own, and the result one of the output's.

    Source:
        Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2; Higham and Mary, SIAM Journal on
        Scientific Computing 41 (2019), A2815-A2835, for taking the roundings for independent.
    """
    accumulator = contract.accumulator or ("float64" if target.dtype == torch.float64 else "float32")
    unit = format_of(accumulator).unit
    each = terms.double()
    sums = each.cumsum(-1).square().sum(-1)
    for at in range(ORDERS):
        order = torch.randperm(each.shape[-1], generator=seeded(f"order {at}")).to(each.device)
        sums = torch.maximum(sums, each.index_select(-1, order).cumsum(-1).square().sum(-1))
    own = TERM_ROUNDINGS * unit * each.square().sum(-1).sqrt()
    return unit / math.sqrt(3) * sums.sqrt() + own + ulp(golden, format_of(target.dtype)) / 2
