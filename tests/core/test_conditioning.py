"""The verdict where the gate says nothing, from evidence made by hand."""

import math
from dataclasses import replace

import pytest

from opcheck.core.conditioning import (
    AtLength,
    Conditioned,
    Errors,
    Growth,
    Kappa,
    decide,
    described,
    excused_by_order,
    log_rms_error,
    slope,
    slope_error,
    slope_picture,
)  # fmt: skip
from opcheck.core.proportions import student
from opcheck.core.verdict import Verdict

NOISE = tuple(0.1 * (-1) ** at for at in range(16))  # mean 0, standard error 0.0258
ALONG = tuple((item, 1.0) for item in NOISE)  # slope 0
QUIET = Errors(rms=1.0, largest=3.0, upward=NOISE, outward=NOISE, along=ALONG)
KAPPA = Kappa(of="inputs", value=1e6, index=(3,), quotient=0.5, perturbed=1.0, unit=2.0**-24)
FOUND = Conditioned(tensor="out", kappa=KAPPA, distinct=16, samples=1024, reference=QUIET, target=QUIET)
SUMMED = replace(FOUND, terms=1024, kappa=replace(KAPPA, of="terms"))


def shifted(by):
    return tuple(item + by for item in NOISE)


def growth(excess, uncertainty):
    return Growth(dim="cols", points=(), reference=0.5, target=0.5 + excess, excess=excess, uncertainty=uncertainty)


def target(**changes):
    return replace(FOUND, target=replace(QUIET, **changes))


def summed(**changes):
    return replace(SUMMED, target=replace(QUIET, **{"explained": 1.0, "explained_at": 4.0, **changes}))


@pytest.mark.parametrize(("found", "verdict", "said"), [
    (FOUND, Verdict.PASS_WITH_LIMITATIONS, "the same envelope"),
    (target(upward=shifted(0.45)), Verdict.PASS_WITH_LIMITATIONS, "the same envelope"),
    (target(upward=shifted(0.65)), Verdict.FAIL, "a mean of +0.65 of the reference's RMS error upwards"),
    (target(outward=shifted(-0.65)), Verdict.FAIL, "a mean of -0.65 of the reference's RMS error away from zero"),
    (replace(target(upward=shifted(2.0)), reference=replace(QUIET, upward=shifted(1.9))),
     Verdict.PASS_WITH_LIMITATIONS, "the same envelope"),
    (target(along=tuple((item - 1.0, 1.0) for item in NOISE)), Verdict.FAIL, "follows golden times 0,"),
    (target(along=tuple((item - 0.2, 1.0) for item in NOISE)), Verdict.PASS_WITH_LIMITATIONS, "the same envelope"),
    (target(along=tuple((30 * item - 0.5, 1.0) for item in NOISE)), Verdict.PASS_WITH_LIMITATIONS, "same envelope"),
    (target(rms=5.0), Verdict.INCONCLUSIVE, "register terms"),
    (target(largest=40.0), Verdict.INCONCLUSIVE, "register terms"),
    (summed(rms=5.0), Verdict.PASS_WITH_LIMITATIONS, "1 times what adding 1024 terms"),
    (summed(rms=90.0, explained=5.0), Verdict.FAIL, "5 times what adding 1024 terms one after the other"),
    (summed(rms=2.0, explained_at=32.0), Verdict.FAIL, "8 times what adding 1024 terms"),
    (replace(summed(rms=5.0), growth=growth(0.9, 0.05)), Verdict.FAIL, "grows with cols by an exponent of 1.40"),
    (replace(summed(rms=5.0), growth=growth(0.9, 0.1)), Verdict.PASS_WITH_LIMITATIONS, "adding 1024 terms"),
    (replace(FOUND, kappa=replace(KAPPA, value=1.0)), Verdict.INCONCLUSIVE, "not explain that the reference is 50%"),
    (replace(FOUND, kappa=replace(KAPPA, value=0.0)), Verdict.INCONCLUSIVE, "does not explain"),
    (replace(FOUND, kappa=replace(KAPPA, value=0.0, perturbed=math.inf)), Verdict.INCONCLUSIVE, "does not explain"),
    (replace(FOUND, kappa=replace(KAPPA, value=2.0, perturbed=3e7)), Verdict.PASS_WITH_LIMITATIONS, "same envelope"),
    (replace(FOUND, kappa=replace(KAPPA, value=2.0, perturbed=9.0)), Verdict.INCONCLUSIVE,
     "a condition number of 1.8e+01 does not explain"),
    (replace(FOUND, kappa=replace(KAPPA, value=math.inf, perturbed=math.inf)), Verdict.INCONCLUSIVE, "at a kink"),
    (replace(FOUND, kappa=replace(KAPPA, problem="golden's graph ends there")), Verdict.INCONCLUSIVE, "graph ends"),
    (replace(FOUND, distinct=2), Verdict.PASS_WITH_LIMITATIONS, "only 2 different results"),
    (replace(target(rms=5.0), distinct=2), Verdict.INCONCLUSIVE, "only 2 different results"),
])  # fmt: skip
def test_verdicts(found, verdict, said):
    assert decide(found, most_rms=4.0)[0] is verdict
    assert said in decide(found, most_rms=4.0)[1]


@pytest.mark.parametrize(("found", "excused"), [
    (summed(rms=5.0, explained=1.0, explained_at=4.0), True),
    (summed(rms=5.0, explained=1.1, explained_at=4.0), False),
    (summed(rms=5.0, explained=1.0, explained_at=4.1), False),
    (summed(rms=5.0, upward=shifted(0.65)), False),
    (summed(rms=5.0, along=tuple((item - 1.0, 1.0) for item in NOISE)), False),
    (replace(summed(rms=5.0), growth=growth(0.9, 0.05)), False),
    (replace(summed(rms=5.0), distinct=2), False),
    (replace(summed(rms=5.0), kappa=replace(KAPPA, problem="the terms add up to 1 where golden is 0.5")), False),
    (target(rms=5.0), False),
])  # fmt: skip
def test_beyond_a_valid_gate_the_order_of_a_sum_alone_excuses(found, excused):
    assert bool(excused_by_order(found)) is excused


def test_a_constant_bias_over_few_different_results_is_no_proof():
    found = replace(target(upward=(3.0,) * 16), distinct=1)
    assert decide(found, most_rms=4.0)[0] is Verdict.PASS_WITH_LIMITATIONS


def test_slope_of_a_power_law():
    assert slope([4, 16, 64, 256], [2 * length**0.5 for length in (4, 16, 64, 256)]) == pytest.approx(0.5)


def test_slope_error_of_two_lengths():
    # (y2 - y1) / log 4, each y with a standard error of 0.1
    assert slope_error([4, 16], [0.1, 0.1]) == pytest.approx(0.1 * math.sqrt(2) / math.log(4))


def test_log_rms_error_of_two_seeds():
    # mean square 2, its standard error sqrt(2) / sqrt(2) = 1; the logarithm of a root has 1 / (2 x 2)
    assert log_rms_error([1.0, 3.0]) == pytest.approx(0.25)


@pytest.mark.parametrize(("t", "freedom", "deviate"), [(2.262, 9, 1.96), (3.250, 9, 2.576), (2.042, 30, 1.96)])
def test_students_quantiles(t, freedom, deviate):
    # a sample of n numbers, half of them 1 - d and half 1 + d, with mean 1 and t = 1 / (s / sqrt(n))
    count = freedom + 1
    spread = math.sqrt(count) / t / math.sqrt(count / (count - 1))
    sample = [1 + spread * (-1) ** at for at in range(count)] if count % 2 == 0 else None
    if sample is None:
        spread = math.sqrt(count) / t / math.sqrt((count - 1) / (count - 1))
        sample = [1 + spread * (-1) ** at for at in range(count - 1)] + [1.0]
    assert student(sample) == pytest.approx(deviate, abs=0.01)


def test_what_was_measured_is_said():
    points = tuple(
        AtLength(length=length, kappa=math.nan, reference=1.0, target=1.0, target_mean=0.0, target_deviate=0.0)
        for length in (4, 1024)
    )
    found = replace(FOUND, kappa=replace(KAPPA, perturbed=9.0), growth=replace(growth(0.25, 0.05), points=points))
    assert described(found) == (
        "input condition 1.0e+06 at [3]; changing the inputs by half an ulp says 9 times that; from cols 4 to 1024 "
        "errors grow by exponents of 0.75 and 0.50, +0.25 +- 0.10 apart"
    )


@pytest.mark.parametrize(("kappa", "over"), [(1e4, "sum |t|"), (math.nan, "")])
def test_growth_is_drawn_where_it_was_measured(kappa, over):
    lengths, errors = (4, 16, 64), (1e-8, 2e-8, 4e-8)
    points = tuple(
        AtLength(length=n, kappa=kappa, reference=e, target=3 * e, target_mean=0.0, target_deviate=0.0)
        for n, e in zip(lengths, errors, strict=True)
    )
    drawn = slope_picture(replace(growth(0.25, 0.125), points=points))
    assert (drawn.dim, drawn.lengths, drawn.over) == ("cols", lengths, over)
    assert drawn.reference == errors
    assert drawn.target == tuple(3 * item for item in errors)
    assert (drawn.reference_exponent, drawn.target_exponent, drawn.excess, drawn.uncertainty) == (
        0.5,
        0.75,
        0.25,
        0.125,
    )
    assert FOUND.every_picture == ()
    assert replace(FOUND, growth=replace(growth(0.25, 0.125), points=points)).every_picture == (drawn,)
