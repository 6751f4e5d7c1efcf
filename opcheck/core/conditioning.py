"""Judge a tensor where the reference is too far from golden to gate by: what did the problem do, what the target?

The evidence is signed errors over many seeds. An ill-conditioned problem makes noise: the errors of a right target have
mean 0 and the reference's size. A wrong target has a mean, follows golden, or is larger than rounding explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from opcheck.core.measured import Index
from opcheck.core.pictures import Picture, Slope
from opcheck.core.proportions import student
from opcheck.core.verdict import Verdict

SIGNIFICANT = 6.0  # standard normal deviates of a mean, or of a slope on golden
LEAST_BIAS = 0.5  # of the reference's RMS error
LEAST_GAIN = 0.25  # of golden: the target would be at most 0.75 times, or at least 1.25 times golden
MOST_EXPLAINED = 4.0  # times the RMS error that a sum one term after the other has
MOST_EXPLAINED_AT = 16.0  # the same of one element
ORDER, ORDER_AT = 1.0, 4.0  # the same where the gate is valid; of 24 kinds of sums the worst had 0.73 and 2.6
MOST_GROWTH = 0.75  # in the exponent: a sum one after the other grows by 0.5 more than one in a tree
EXCUSED = 64.0  # roundings, times the condition number, that the reference's own error may come to
AGREE = 4.0  # the factor within which the two estimates of the condition agree
DISTINCT = 8  # seeds that give golden different values, below which no mean is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Find the condition of a tensor's worst element, and the errors of reference and target over `seeds` seeds.

    Attributes:
        beyond: Times the reference's RMS error from which the growth with the reduction's length is measured, too,
            unless the target is known to be wrong already.
    """

    tensor: str
    seeds: int
    beyond: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kappa:
    """The condition number of one element.

    Attributes:
        of: What it was computed from: the author's `terms`, `sum |t| / |sum t|`; or the inputs and upstream gradient
            `x`, `sum |x df/dx| / |f|` through golden, which is another quantity.
        value: Without unit; Inf where the element is 0, NaN where it is not known.
        index: The element where the reference is furthest from golden.
        quotient: `|reference - golden| / |golden|` there.
        perturbed: RMS change of golden under random changes of the inputs by up to half an ulp, over the change that
            the derivatives predict; NaN where it is not known.
        unit: Unit roundoff of the reference's element type.
        problem: Why it is not known.
    """

    of: Literal["terms", "inputs"]
    value: float = math.nan
    index: Index = ()
    quotient: float = math.nan
    perturbed: float = math.nan
    unit: float = 0.0
    problem: str = ""

    @property
    def excuses(self) -> float:
        """The larger of the two estimates: where a result always cancels, its derivatives do, and are noise as it is.

        At a kink with the derivative 0 there is but one, and that excuses nothing.
        """
        return self.value * self.perturbed if AGREE < self.perturbed < math.inf else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """One implementation's signed errors over the seeds, in units of the reference's RMS error.

    Attributes:
        rms: RMS over all elements and seeds.
        largest: Maximum of the magnitude.
        upward: Each seed's mean.
        outward: Each seed's mean of the error times the sign of golden.
        along: Each seed's sum of error times golden, and of golden squared.
        explained, explained_at: RMS and maximum of the error over its standard deviation where the terms are
            added one after the other, in the worst of some orders; NaN where the terms are not known.
        moved: The largest change of a result by another order of the reduction; NaN where it cannot be asked for.
    """

    rms: float
    largest: float
    upward: tuple[float, ...]
    outward: tuple[float, ...]
    along: tuple[tuple[float, float], ...]
    explained: float = math.nan
    explained_at: float = math.nan
    moved: float = math.nan

    @property
    def gain(self) -> float:
        """The slope of the error on golden: a target that is `(1 + b)` times golden has b."""
        whole = math.fsum(square for _, square in self.along)
        return math.fsum(product for product, _ in self.along) / whole if whole else 0.0

    @property
    def gain_error(self) -> float:
        """The standard error of `gain`, from the seeds' residuals."""
        whole, count, gain = math.fsum(square for _, square in self.along), len(self.along), self.gain
        if not whole or count < 2:
            return math.inf
        residuals = math.fsum((product - gain * square) ** 2 for product, square in self.along)
        return math.sqrt(residuals * count / (count - 1)) / whole


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLength:
    """One length of the reduction: its median condition number, RMS errors, and the target's mean error.

    Errors are over `sum |t|` where the terms are known, else in the unit of the tensor.
    """

    length: int
    kappa: float
    reference: float
    target: float
    target_mean: float
    target_deviate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How RMS errors grow with the length of the reduction: exponents by least squares on the logarithms.

    Attributes:
        excess, uncertainty: The target's exponent minus the reference's, and its standard error.
    """

    dim: str
    points: tuple[AtLength, ...]
    reference: float
    target: float
    excess: float
    uncertainty: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioned:
    """Answer to `Condition`.

    Attributes:
        distinct: Seeds whose golden differs from the other seeds' ones.
        samples: Elements over all seeds.
        terms: Terms of each element's sum, 0 where they are not known.
        growth: None where it was not measured.
        pictures: The errors on the first seed, and all of them counted.
    """

    tensor: str
    kappa: Kappa
    distinct: int
    samples: int
    reference: Errors
    target: Errors
    terms: int = 0
    growth: Growth | None = None
    pictures: tuple[Picture, ...] = ()

    @property
    def every_picture(self) -> tuple[Picture, ...]:
        """Its pictures, and how the errors grow where that was measured."""
        return (*self.pictures, slope_picture(self.growth)) if self.growth is not None else self.pictures


def slope_picture(growth: Growth) -> Slope:
    """Return what is drawn of errors at several lengths."""
    known = not any(math.isnan(item.kappa) for item in growth.points)
    return Slope(
        dim=growth.dim, over="sum |t|" if known else "", lengths=tuple(item.length for item in growth.points),
        target=tuple(item.target for item in growth.points),
        reference=tuple(item.reference for item in growth.points),
        target_exponent=growth.target, reference_exponent=growth.reference,
        excess=growth.excess, uncertainty=growth.uncertainty,
    )  # fmt: skip


def decide(found: Conditioned, *, most_rms: float) -> tuple[Verdict, str]:
    """Return the verdict and the sentence for it.

    Args:
        most_rms: Times the reference's RMS error up to which the target's is the same envelope.
    """
    if found.distinct < DISTINCT:
        return _undistinguished(found, most_rms)
    if wrong := _wrong(found):
        return Verdict.FAIL, wrong
    target = found.target
    if problem := _inexcusable(found):
        return Verdict.INCONCLUSIVE, problem
    envelope = _envelope(found)
    if target.rms <= most_rms and target.largest <= most_rms * max(found.reference.largest, 4.0):
        return Verdict.PASS_WITH_LIMITATIONS, f"{envelope}, without a bias: the same envelope"
    if target.explained <= MOST_EXPLAINED and target.explained_at <= MOST_EXPLAINED_AT:
        times = f"{target.explained:.1g} times what adding {found.terms} terms one after the other makes of it"
        return Verdict.PASS_WITH_LIMITATIONS, f"{envelope}, without a bias, and {times}"
    return Verdict.INCONCLUSIVE, f"{envelope}; register terms, by which an order of summation can be told from a fault"


def excused_by_order(found: Conditioned) -> str:
    """Return the sentence where the order of a sum explains errors that the gate does not allow, else nothing.

    Nothing else may be wrong: no bias, no slope on golden, no growth beyond that of another order.
    """
    target = found.target
    explained = target.explained <= ORDER and target.explained_at <= ORDER_AT
    if not explained or found.distinct < DISTINCT or found.kappa.problem or _wrong(found):
        return ""
    times = f"{target.explained:.1g} times what adding {found.terms} terms one after the other makes of it"
    return f"{_envelope(found)}, without a bias, and {times}: another order"


def _envelope(found: Conditioned) -> str:
    return f"over {found.samples} samples the target's RMS error is {found.target.rms:.2g} times the reference's"


def _undistinguished(found: Conditioned, most_rms: float) -> tuple[Verdict, str]:
    few = f"the seeds give only {found.distinct} different results, so that a bias cannot be told from noise"
    if found.target.rms <= most_rms and not _inexcusable(found):
        return Verdict.PASS_WITH_LIMITATIONS, f"{few}; the target is no further from golden than the reference"
    return Verdict.INCONCLUSIVE, few


def _wrong(found: Conditioned) -> str:
    """Return what is wrong with the target that no rounding explains, empty where nothing is."""
    target, reference = found.target, found.reference
    for name, mine, theirs in (
        ("upwards", target.upward, reference.upward),
        ("away from zero", target.outward, reference.outward),
    ):
        mean, deviate = fmean(mine), student(mine)
        if deviate > SIGNIFICANT and abs(mean) - abs(fmean(theirs)) > LEAST_BIAS:
            return (
                f"the target is biased: its errors have a mean of {mean:+.2g} of the reference's RMS error {name}, "
                f"{deviate:.0f} standard errors from 0, and the reference's {fmean(theirs):+.2g}"
            )
    gain, known = target.gain, target.gain_error
    if abs(gain) > SIGNIFICANT * known and abs(gain) - abs(reference.gain) > LEAST_GAIN:
        return f"the target follows golden times {1 + gain:.2g}, give or take {known:.1g}: that is another formula"
    if target.explained > MOST_EXPLAINED or target.explained_at > MOST_EXPLAINED_AT:
        times = max(target.explained, target.explained_at / MOST_EXPLAINED_AT * MOST_EXPLAINED)
        return (
            f"the target's error is {times:.2g} times what adding {found.terms} terms one after the other in the "
            f"declared accumulator makes of it: a narrower accumulator, or another formula"
        )
    growth = found.growth
    if growth is not None and growth.excess - 2 * growth.uncertainty > MOST_GROWTH:
        return (
            f"the target's error grows with {growth.dim} by an exponent of {growth.target:.2f}, the reference's by "
            f"{growth.reference:.2f}; orders of summation differ by 0.5"
        )
    return ""


def _inexcusable(found: Conditioned) -> str:
    """Return why conditioning does not explain the reference's own error, empty where it does."""
    kappa = found.kappa
    if kappa.problem:
        return f"its condition number is not known: {kappa.problem}"
    if math.isinf(kappa.value):
        return "" if kappa.of == "terms" or kappa.perturbed <= AGREE else "golden is 0 there, at a kink"
    roundings = max(EXCUSED, 4 * math.sqrt(found.terms))
    if kappa.quotient > roundings * kappa.excuses * kappa.unit:
        off = f"that the reference is {kappa.quotient:.0%} off"
        return f"a condition number of {kappa.excuses:.1e} does not explain {off}; mend the reference, or golden"
    return ""


def described(found: Conditioned) -> str:
    """Say what was measured: the condition number, the orders and the growth."""
    kappa, target, reference = found.kappa, found.target, found.reference
    parts = []
    if not kappa.problem:
        name = "condition number" if kappa.of == "terms" else "input condition"
        parts.append(f"{name} {kappa.value:.1e} at [{', '.join(map(str, kappa.index))}]")
        if not math.isnan(kappa.perturbed) and not 1 / AGREE <= kappa.perturbed <= AGREE:
            parts.append(f"changing the inputs by half an ulp says {kappa.perturbed:.1g} times that")
    if not math.isnan(target.moved + reference.moved):
        parts.append(f"another order moves the target by {target.moved:.2g}, the reference by {reference.moved:.2g}")
    if found.growth is not None:
        growth = found.growth
        lengths = f"{growth.points[0].length} to {growth.points[-1].length}"
        parts.append(
            f"from {growth.dim} {lengths} errors grow by exponents of {growth.target:.2f} and {growth.reference:.2f}, "
            f"{growth.excess:+.2f} +- {2 * growth.uncertainty:.2f} apart"
        )
    return "; ".join(parts)


def slope(lengths: Sequence[int], values: Sequence[float]) -> float:
    """Return the exponent `p` of the power law `length^p` nearest to positive values, by least squares."""
    x, y = [math.log(item) for item in lengths], [math.log(item) for item in values]
    mean = fmean(x)
    return math.fsum((a - mean) * b for a, b in zip(x, y, strict=True)) / math.fsum((a - mean) ** 2 for a in x)


def slope_error(lengths: Sequence[int], errors: Sequence[float]) -> float:
    """Return the standard error of `slope` where the logarithm of each value has the standard error given."""
    x = [math.log(item) for item in lengths]
    mean = fmean(x)
    whole = math.fsum((a - mean) ** 2 for a in x)
    return math.sqrt(math.fsum(((a - mean) * e / whole) ** 2 for a, e in zip(x, errors, strict=True)))


def log_rms_error(squares: Sequence[float]) -> float:
    """Return the standard error of the logarithm of an RMS whose seeds have these mean squares."""
    mean = fmean(squares)
    return stdev(squares) / math.sqrt(len(squares)) / (2 * mean) if mean else math.inf
