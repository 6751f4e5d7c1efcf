"""Structure and numerics exactly at their limits, one step beyond, and on each kind of evidence."""

import math

import pytest

from opcheck.auditor import judge
from opcheck.checks import all_checks
from opcheck.checks.protocol import example
from opcheck.core.conditioning import Condition, Conditioned, Errors, Kappa
from opcheck.core.measured import Element, Measured
from opcheck.core.outcome import (
    Compare,
    Compared,
    Crashed,
    Misfit,
    Raised,
    Returned,
    Siblings,
    TimedOut,
)
from opcheck.core.policy import Policy
from opcheck.core.verdict import Verdict

PASS, LIMITED, INCONCLUSIVE, FAIL = Verdict
CHECKS = all_checks()
AT = Element(index=(2, 128), golden=1.0, reference=1.0, target=2.0)


def item(dtype="float16", judged=387, **changes):
    return Measured(tensor="out", dtype=dtype, shape=(3, 129), judged=judged, scale=1.0, worst=(AT,), **changes)


def verdict(check, *tensors, misfits=(), outcome=None, more=None, dtype="float16"):
    evidence = outcome or Returned(evidence=Compared(tensors=tensors, misfits=misfits))
    found = judge({check: CHECKS[check]}, example(dtype=dtype), {Compare(): evidence, **(more or {})}, Policy())
    (one,) = found
    return one.verdict


def beyond(value):
    return math.nextafter(value, math.inf)


@pytest.mark.parametrize(("dtype", "allowed"), [
    ("float16", 2 * 2.0**-12 + 2.0**-15),
    ("bfloat16", 2 * 2.0**-12 + 2.0**-15),
    ("float32", 4 * 2.0**-12 + 2.0**-15),
    ("float64", 4 * 2.0**-12 + 2.0**-15),
])  # fmt: skip
def test_numerics_holds_at_the_threshold_and_not_one_step_beyond(dtype, allowed):
    parts = {"dtype": dtype, "reference_error": 2.0**-12, "rounding_floor": 2.0**-15}
    assert verdict("numerics", item(target_error=allowed, **parts)) is PASS
    assert verdict("numerics", item(target_error=beyond(allowed), **parts)) is FAIL


@pytest.mark.parametrize(("dtype", "trigger"), [("float16", 0.1), ("float32", 0.1), ("float8_e5m2", 0.25)])
def test_above_the_trigger_no_pass_or_fail_comes_from_the_gate(dtype, trigger):
    def judged(reference, target=0.9):
        return verdict("numerics", item(dtype=dtype, reference_error=reference, target_error=target))

    assert judged(trigger) is FAIL
    assert judged(beyond(trigger)) is INCONCLUSIVE
    assert judged(beyond(trigger), target=0.0) is PASS, "a target at golden itself needs no gate"


@pytest.mark.parametrize(("dtype", "most"), [("float16", 2.0), ("float32", 4.0)])
def test_without_a_gate_noise_as_large_as_the_fudge_factor_allows_is_excused(dtype, most):
    noise = tuple(0.1 * (-1) ** at for at in range(16))

    def errors(rms):
        return Errors(rms=rms, largest=3.0, upward=noise, outward=noise, along=tuple((one, 1.0) for one in noise))

    def judged(rms):
        known = Kappa(of="inputs", value=1e9, index=(2, 128), quotient=0.5, perturbed=1.0, unit=2.0**-24)
        found = Conditioned(
            tensor="out", kappa=known, distinct=16, samples=6192, reference=errors(1.0), target=errors(rms)
        )
        more = {Condition(tensor="out", seeds=16, beyond=most): Returned(evidence=found)}
        return verdict("numerics", item(dtype=dtype, reference_error=0.5, target_error=1.0), more=more, dtype=dtype)

    assert judged(most) is LIMITED
    assert judged(beyond(most)) is INCONCLUSIVE


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, PASS),
    ({"void": 1}, LIMITED),
    ({"alike": 1}, LIMITED),
    ({"held": 1, "rounding_floor": 0.5, "held_error": 0.5}, PASS),
    ({"held": 1, "rounding_floor": 0.5, "held_error": beyond(0.5)}, FAIL),
    ({"held": 1, "rounding_floor": 0.5, "held_error": 0.6, "reference_error": 9.0}, FAIL),
    ({"overflow_gap": 2.5, "overflow_at": AT, "reference_error": 1.0, "rounding_floor": 0.5}, PASS),
    ({"overflow_gap": beyond(2.5), "overflow_at": AT, "reference_error": 1.0, "rounding_floor": 0.5}, FAIL),
    ({"dtype": "int64", "unequal": 0}, PASS),
    ({"dtype": "int64", "unequal": 1}, FAIL),
    ({"dtype": "bool", "unequal": 387}, FAIL),
    ({"dtype": "float8_e4m3fn", "grid": True}, PASS),
    ({"dtype": "float8_e4m3fn", "grid": True, "unequal": 1}, FAIL),
])  # fmt: skip
def test_structure(changes, expected):
    assert verdict("structure", item(**changes)) is expected


@pytest.mark.parametrize(("role", "expected"), [
    ("target", FAIL), ("reference", INCONCLUSIVE), ("golden", INCONCLUSIVE), ("samples", INCONCLUSIVE),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["misfit", "raised", "crashed", "timed out"])
def test_a_target_that_does_not_come_back_fails_and_an_oracle_is_no_evidence(kind, role, expected):
    lost = {
        "raised": Raised(role=role, phase="forward", error="ValueError", message="no"),
        "crashed": Crashed(role=role, reason="was killed by SIGSEGV"),
        "timed out": TimedOut(role=role, seconds=60.0),
    }
    misfits = (Misfit(tensor="out", problem="wrong shape", role=role),)
    assert verdict("structure", misfits=misfits, outcome=lost.get(kind)) is expected


def test_integers_and_void_tensors_have_no_numerics():
    for one in (item(dtype="int64", unequal=3), item(judged=0)):
        seen = {Compare(): Returned(evidence=Compared(tensors=(one,)))}
        assert judge({"numerics": CHECKS["numerics"]}, example(), seen, Policy()) == ()


def test_numerics_says_nothing_of_a_tensor_whose_structure_fails():
    bad = item(overflow_gap=9.0, overflow_at=AT, target_error=9.0)
    both = {name: CHECKS[name] for name in ("structure", "numerics")}
    found = judge(both, example(dtype="float16"), {Compare(): Returned(evidence=Compared(tensors=(bad,)))}, Policy())
    assert [(one.check, one.verdict) for one in found] == [("structure", FAIL)]


@pytest.mark.parametrize(("judged", "dtype", "count"), [(387, "float32", 8), (1, "float16", 64), (63, "float16", 8)])
def test_the_reference_is_asked_again_over_sibling_seeds(judged, dtype, count):
    seen = {Compare(): Returned(evidence=Compared(tensors=(item(dtype=dtype, judged=judged),)))}
    check = CHECKS["numerics"]
    assert check.plan(example(dtype=dtype), seen, lambda _: check.limits()) == (Siblings(count=count),)
    enough = {Compare(): Returned(evidence=Compared(tensors=(item(judged=387),)))}
    assert check.plan(example(dtype="float16"), enough, lambda _: check.limits()) == ()
