"""A case whose tolerance would also accept a wrong answer counts for nothing."""

import math

import pytest

from opcheck.core.finding import Finding
from opcheck.core.power import smallest_caught, unproven, vacuous
from opcheck.core.report import CaseReport, TensorRow
from opcheck.core.verdict import Verdict


def row(**changes):
    fields = {
        "tensor": "out", "dtype": "float32", "reference_error": 1e-7, "target_error": 1e-7,
        "reference_relative_error": 1e-7, "rounding_floor": 0.0, "threshold": 1e-6, "protocol_threshold": 1e-6,
        "gate_valid": True, "verdict": Verdict.PASS, "scale": 1.0, "decoy": "x", "decoy_distance": 0.5,
    }  # fmt: skip
    return TensorRow(**{**fields, **changes})


def case(*rows, id="ops::a[float32;n=3;normal;;;;0]@cpu"):
    return CaseReport(id=id, verdict=Verdict.PASS, tensors=rows)


@pytest.mark.parametrize(
    ("changes", "would"),
    [
        ({}, ""),
        ({"scale": 0.0, "threshold": 0.0}, "zeros"),
        ({"scale": 1e-6}, "zeros"),  # the tolerance reaches down to zero
        ({"scale": 1.1e-6}, "half of the result"),
        ({"scale": 2.1e-6, "decoy_distance": math.inf}, ""),
        ({"decoy_distance": 0.0}, "x in its place"),  # an op that happens to be the identity on this case
        ({"decoy_distance": 1e-6, "decoy": "grad y"}, "grad y in its place"),
        ({"decoy_distance": math.inf, "decoy": ""}, ""),
    ],
)
def test_what_a_tolerance_would_also_accept(changes, would):
    assert vacuous(row(**changes)) == would


def test_one_case_that_counts_is_enough_and_none_is_a_sentence():
    zeros, good = row(scale=0.0), row()
    assert list(unproven([case(zeros), case(good)])) == []
    # The identity in one case, and in another what the tolerance does not tell from it.
    (sentence,) = unproven([case(zeros), case(row(decoy_distance=0.0)), case(row(decoy_distance=1e-7))])
    assert sentence == (
        "no case counts for out: each tolerance would also accept zeros, x in its place; give it values that matter"
    )
    assert list(unproven([])) == []


def test_an_op_that_is_the_identity_in_every_case_may_be_it():
    copies = [case(row(decoy_distance=0.0)), case(row(scale=0.0, decoy_distance=0.0))]
    assert list(unproven(copies)) == []
    (sentence,) = unproven([case(row(scale=0.0, threshold=0.0, decoy_distance=0.0))])
    assert "would also accept zeros" in sentence
    # Not the same input in every case: then it is no identity.
    mixed = [case(row(decoy_distance=0.0)), case(row(decoy="y", decoy_distance=0.0))]
    assert len(list(unproven(mixed))) == 1


@pytest.mark.parametrize(("drawn", "sentences"), [((0.0, 0.0), 1), ((0.0, 1.0), 0)])
def test_an_op_that_is_declared_random_and_never_draws_proves_nothing(drawn, sentences):
    cases = [
        CaseReport(
            id="ops::a[float32;n=3;normal;;;;0]@cpu", verdict=Verdict.PASS, findings=(
                Finding(check="randomness", tensor="out", verdict=Verdict.PASS, law="It holds.",
                        numbers={"drawn": value}),
            ),
        )
        for value in drawn
    ]  # fmt: skip
    found = list(unproven(cases))
    assert len(found) == sentences
    assert all("the same bits under every seed" in text for text in found)


def test_the_smallest_error_is_that_of_the_sharpest_case_that_counts():
    loose = case(row(threshold=1e-3), id="ops::a[float32;n=3;normal;;;;1]@cpu")
    sharp = case(row(threshold=1e-6, scale=2.0), id="ops::a[float32;n=3;normal;;;;2]@cpu")
    vacuous_one = case(row(threshold=0.0, scale=0.0))
    invalid = case(row(threshold=1e-9, gate_valid=False))
    assert smallest_caught([loose, sharp, vacuous_one, invalid]) == {
        "out (float32)": (5e-7, "ops::a[float32;n=3;normal;;;;2]@cpu")
    }
