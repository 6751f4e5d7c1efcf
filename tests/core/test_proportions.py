"""The statistics of counts give the deviates that exact rationals and mpmath give."""

import math
from fractions import Fraction

import mpmath
import pytest

from opcheck.core.proportions import SIGNIFICANT, difference, proportions, welch


def test_the_limit_leaves_one_false_alarm_in_a_thousand_million():
    assert float(mpmath.erfc(SIGNIFICANT / mpmath.sqrt(2))) == pytest.approx(1.06e-9, rel=0.01)


def test_two_proportions_by_hand():
    # 60 of 100 against 45 of 100: pooled 0.525, variance 0.525 * 0.475 / 50.
    assert proportions(60, 100, 45, 100) == pytest.approx(0.15 / math.sqrt(0.525 * 0.475 / 50))
    assert proportions(45, 100, 60, 100) == proportions(60, 100, 45, 100)


@pytest.mark.parametrize(("kept", "other"), [(0, 0), (50, 50), (20, 20)])
def test_equal_shares_are_no_difference(kept, other):
    assert proportions(kept, 50, other, 50) == 0.0


@pytest.mark.parametrize(("kept", "total", "other", "beside", "ways"), [
    # All of the few lie in one group: C(its size, few) of C(both sizes, few).
    (0, 10, 4, 10, Fraction(math.comb(10, 4), math.comb(20, 4))),
    (4, 10, 0, 10, Fraction(math.comb(10, 4), math.comb(20, 4))),
    (10, 10, 7, 12, Fraction(math.comb(12, 5), math.comb(22, 5))),
    (7, 12, 10, 10, Fraction(math.comb(12, 5), math.comb(22, 5))),
    (0, 30, 30, 30, Fraction(1, math.comb(60, 30))),
])  # fmt: skip
def test_where_a_count_is_none_or_all_the_test_is_exact(kept, total, other, beside, ways):
    with mpmath.workdps(40):
        deviate = -mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(ways.numerator) / ways.denominator - 1)
    assert proportions(kept, total, other, beside) == pytest.approx(float(deviate), rel=1e-9)


def test_none_of_millions_against_all_has_no_underflow():
    assert SIGNIFICANT < proportions(0, 10**7, 10**7, 10**7) < 40


def test_one_lost_element_of_many_is_no_evidence():
    assert proportions(10_320, 10_320, 10_319, 10_320) == pytest.approx(0.0, abs=1e-9)  # doubled, 1/2 is certain


@pytest.mark.parametrize("gap", [0.5, 2.0, 5.0, 9.0])
def test_welch_is_the_normal_deviate_of_students_t(gap):
    first, second = [0.0, 1.0, 2.0, 3.0] * 4, [value + gap for value in (0.0, 1.0, 2.0, 3.0)] * 4
    spread = 20 / 15  # of 16 numbers, 4 of each: squares about their mean are 20
    t, freedom = gap / math.sqrt(2 * spread / 16), 30
    # P(|T| > t) = I_(n / (n + t^2))(n / 2, 1 / 2)
    with mpmath.workdps(40):
        tails = mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True)
        deviate = mpmath.sqrt(2) * mpmath.erfinv(1 - tails)
    assert welch(first, second) == pytest.approx(float(deviate), rel=0.01)


def test_samples_that_do_not_vary_are_equal_or_infinitely_far():
    assert welch([0.5] * 4, [0.5] * 4) == 0.0
    assert welch([0.5] * 4, [0.25] * 4) == math.inf
    assert welch([0.5] * 4, [0.25, 0.75, 0.25, 0.75]) == 0.0


def test_rows_dropped_as_one_are_no_independent_elements():
    rows, other = [129, 0] * 8, [129, 129, 129, 0] * 4  # one row of 129 elements, kept 8 and 12 times of 16
    assert proportions(sum(rows), 129 * 16, sum(other), 129 * 16) > SIGNIFICANT
    assert difference(rows, other, 129) < 2
    assert difference([320, 330] * 8, [160, 170] * 8, 645) > SIGNIFICANT
    assert difference([0] * 16, [0] * 16, 0) == 0.0
