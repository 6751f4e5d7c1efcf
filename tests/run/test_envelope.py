"""Sums of known errors, audited where the reference says nothing: right ones are excused, wrong ones are not."""

import pytest

from benchmarks.conditioning import RIGHT, WRONG, verdict
from opcheck.core.case import Dims
from opcheck.core.verdict import Verdict

DIMS = Dims(rows=64, cols=256)
CANCELLING = 1e8


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_right_sum_is_excused(name, seed):
    assert verdict(RIGHT[name], CANCELLING, DIMS, seed, terms=True) is Verdict.PASS_WITH_LIMITATIONS


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sum_is_not(name):
    assert verdict(WRONG[name], CANCELLING, DIMS, 0, terms=True) is Verdict.FAIL


@pytest.mark.parametrize("name", ["in parts", "in lanes"])
def test_a_right_sum_without_terms_is_excused_by_its_inputs(name):
    assert verdict(RIGHT[name], CANCELLING, DIMS, 0, terms=False) is Verdict.PASS_WITH_LIMITATIONS


@pytest.mark.parametrize("name", ["each term up 1 ulp", "zeros", "half of it"])
def test_a_wrong_sum_without_terms_is_not(name):
    assert verdict(WRONG[name], CANCELLING, DIMS, 0, terms=False) is Verdict.FAIL


@pytest.mark.parametrize("name", ["in parts", "one by one"])
def test_where_the_gate_says_something_it_decides(name):
    assert verdict(RIGHT[name], 1.0, DIMS, 0, terms=True) is Verdict.PASS


LONG = Dims(rows=64, cols=1024)
UNLUCKY = 9  # a seed with which a sum one after the other is beyond the gate, with 3 times the noise of a tree


@pytest.mark.slow
@pytest.mark.parametrize(("terms", "expected"), [(True, Verdict.PASS_WITH_LIMITATIONS), (False, Verdict.FAIL)])
def test_beyond_the_gate_an_order_of_the_sum_explains_a_right_one_whose_terms_are_known(terms, expected):
    assert verdict(RIGHT["one by one"], 1e4, LONG, UNLUCKY, terms=terms) is expected


@pytest.mark.parametrize(
    "name",
    [
        "one by one, each term up 1 ulp",
        "one by one, one term is missing",
        "partial sums in bfloat16",
        "the last term is missing",
    ],
)
def test_beyond_the_gate_no_order_explains_a_wrong_one(name):
    assert verdict(WRONG[name], 1e4, DIMS, 0, terms=True) is Verdict.FAIL
