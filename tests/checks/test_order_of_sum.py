"""When `numerics` asks whether an order of summation explains what is beyond the gate."""

from dataclasses import replace

import pytest

from opcheck.checks.numerics import check
from opcheck.checks.protocol import example
from opcheck.core.conditioning import Condition, Conditioned, Errors, Kappa
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compare, Compared, Locate, OracleError, OracleErrors, Returned, Siblings
from opcheck.core.verdict import Verdict

NOISE = tuple(0.1 * (-1) ** at for at in range(16))
ALONG = tuple((item, 1.0) for item in NOISE)
WHY = Condition(tensor="out", seeds=16, beyond=2.0)


def asked(tensor="out", *, terms=True, variant="", target=2.5, more=None):
    whole = example(dtype="float16")
    subject = replace(whole, terms=terms, case=replace(whole.case, variant=variant))
    item = Measured(
        tensor=tensor, dtype="float16", shape=(3, 129), judged=387, worst=(), scale=100.0, target_error=target,
        reference_error=1.0, rounding_floor=0.0,
    )  # fmt: skip
    noise = OracleError(tensor=tensor, reference_error=1.0, rounding_floor=0.0, scale=100.0, judged=3096)
    seen = {
        Compare(): Returned(evidence=Compared(tensors=(item,))),
        Siblings(count=8): Returned(evidence=OracleErrors(tensors=(noise,), draws=8)),
        **(more or {}),
    }
    (finding,) = check.judge(subject, seen, lambda _: check.limits())
    return check.plan(subject, seen, lambda _: check.limits()), finding.verdict


def errors(rms, **changes):
    return replace(Errors(rms=rms, largest=3 * rms, upward=NOISE, outward=NOISE, along=ALONG), **changes)


def answer(**changes):
    known = Kappa(of="terms", value=1.0, index=(0, 0), quotient=1e-7, unit=2.0**-11)
    target = errors(3.0, **{"explained": 0.8, "explained_at": 4.0, **changes})
    return Returned(
        evidence=Conditioned(
            tensor="out", kappa=known, distinct=16, samples=6192, reference=errors(1.0), target=target, terms=1024
        )
    )


def test_a_sum_beyond_the_gate_is_asked_for_its_errors_over_many_seeds_first():
    assert asked() == ((WHY,), Verdict.FAIL)


@pytest.mark.parametrize("other", [{"terms": False}, {"tensor": "grad x"}, {"variant": "%programs=16"}])
def test_what_has_no_terms_fails_at_once(other):
    wanted, verdict = asked(**other)
    assert [type(trial) for trial in wanted] == [Locate]
    assert verdict is Verdict.FAIL


def test_an_order_that_explains_it_is_a_limitation():
    assert asked(more={WHY: answer()}) == ((), Verdict.PASS_WITH_LIMITATIONS)


@pytest.mark.parametrize("wrong", [{"explained": 1.1}, {"explained_at": 4.1}, {"upward": tuple(n + 2 for n in NOISE)}])
def test_what_no_order_explains_fails_and_is_located(wrong):
    wanted, verdict = asked(more={WHY: answer(**wrong)})
    assert [type(trial) for trial in wanted] == [Locate]
    assert verdict is Verdict.FAIL


def test_within_the_gate_nothing_is_asked():
    assert asked(target=1.9) == ((), Verdict.PASS)
