"""How errors grow with the length of a reduction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean, median

import torch

from opcheck.core.case import Case
from opcheck.core.conditioning import AtLength, Growth, log_rms_error, slope, slope_error
from opcheck.core.floats import upcast_exact
from opcheck.core.outcome import Role
from opcheck.core.outside import outside
from opcheck.core.policy import Contract
from opcheck.core.proportions import student
from opcheck.core.spec import OpSpec
from opcheck.errors import OpcheckError
from opcheck.run.kappa import terms_of
from opcheck.run.roles import RoleFailed, Run

LENGTHS = 5
STEP = 4  # from one length to the next
LONGEST = 1024  # unless the case itself is longer
SAMPLES = 64  # at each length
FEWEST_SEEDS = 16
STRIDE = 104_729  # a prime, so that these are not the siblings of the case


def lengths_of(contract: Contract, case: Case) -> tuple[str, tuple[int, ...]]:
    """Return the reduced dimension and the lengths at which it is looked at; `"", ()` where there is not exactly one.

    The lengths are legal under the contract, each `STEP` times the one before.
    """
    reduced = [name for name in contract.reduces if name in case.dims]
    if len(reduced) != 1:
        return "", ()
    (dim,) = reduced
    top = max(LONGEST, case.dims[dim])
    lengths = [max(1, top // STEP**at) for at in reversed(range(LENGTHS))]
    multiple, sizes = contract.multiple.get(dim, 1), contract.sizes.get(dim, ())
    legal = [
        length
        for length in dict.fromkeys(length // multiple * multiple for length in lengths)
        if contract.smallest.get(dim, 1) <= length <= contract.largest.get(dim, length)
        and (not sizes or length in sizes)
        and not outside(contract, replace(case, dims=case.dims.with_size(dim, length)))
    ]
    return (dim, tuple(legal)) if len(legal) == LENGTHS else ("", ())


def growth_of(
    spec: OpSpec,
    contract: Contract,
    case: Case,
    device: torch.device,
    tensor: str,
    runs: Callable[[Case, Role], Run],
) -> Growth | None:
    """Measure RMS errors at several lengths.

    None where the contract has not the lengths, where the op takes one of them amiss, or where an error is 0.
    """
    dim, lengths = lengths_of(contract, case)
    points: list[AtLength] = []
    uncertain: list[float] = []
    for length in lengths:
        other = replace(case, dims=case.dims.with_size(dim, length))
        try:
            point, error = _at(spec, other, device, tensor, runs, length)
        except (RoleFailed, OpcheckError):
            return None
        points.append(point)
        uncertain.append(error)
    if not points or not all(item.reference > 0 and item.target > 0 for item in points):
        return None
    found = [slope(lengths, [getattr(item, role) for item in points]) for role in ("reference", "target")]
    return Growth(
        dim=dim, points=tuple(points), reference=found[0], target=found[1], excess=found[1] - found[0],
        uncertainty=slope_error(lengths, uncertain),
    )  # fmt: skip


def _at(
    spec: OpSpec, case: Case, device: torch.device, tensor: str, runs: Callable[[Case, Role], Run], length: int
) -> tuple[AtLength, float]:
    """Return the errors at one length, and the standard error of the logarithm of target over reference."""
    squares: dict[str, list[float]] = {"reference": [], "target": []}
    means: list[float] = []
    kappas: list[float] = []
    magnitudes: list[float] = []
    seeds = SAMPLES
    while len(means) < seeds:
        sibling = case.with_seed(case.seed + (len(means) + 1) * STRIDE)
        truth = runs(sibling, "golden").tensors[tensor].detach().double()
        seeds = max(FEWEST_SEEDS, -(-SAMPLES // max(truth.numel(), 1)))
        for role, found in squares.items():
            value = upcast_exact(runs(sibling, role).tensors[tensor].detach())  # type: ignore[arg-type]
            error = (value - truth)[(value - truth).isfinite()]
            found.append(float(error.square().mean()) if error.numel() else 0.0)
            if role == "target":
                means.append(float(error.mean()) if error.numel() else 0.0)
        terms = terms_of(spec, sibling, device).get(tensor)
        if terms is not None:
            magnitudes.append(float(terms.abs().sum(-1).mean()))
            kappas.append(float((terms.abs().sum(-1) / terms.sum(-1).abs()).median()))
    unit = fmean(magnitudes) if magnitudes else 1.0
    point = AtLength(
        length=length, kappa=median(kappas) if kappas else math.nan,
        reference=math.sqrt(fmean(squares["reference"])) / unit, target=math.sqrt(fmean(squares["target"])) / unit,
        target_mean=fmean(means) / unit, target_deviate=student(means),
    )  # fmt: skip
    return point, math.hypot(log_rms_error(squares["reference"]), log_rms_error(squares["target"]))
