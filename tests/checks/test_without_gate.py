"""A tensor whose gate says nothing, in a case of which a sample of the programs ran."""

from dataclasses import replace

import pytest

from opcheck.checks.numerics import check
from opcheck.checks.protocol import example
from opcheck.core.conditioning import Condition
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compare, Compared, Orders, Returned
from opcheck.core.verdict import Verdict

LIMITS = check.limits()


def plan_and_judge(variant, **errors):
    whole = example()
    subject = replace(whole, case=replace(whole.case, variant=variant))
    item = Measured(tensor="grad x", dtype="float16", shape=(3, 129), judged=387, worst=(), **errors)
    seen = {Compare(): Returned(evidence=Compared(tensors=(item,)))}
    (finding,) = check.judge(subject, seen, lambda _: LIMITS)
    return check.plan(subject, seen, lambda _: LIMITS), finding


@pytest.mark.parametrize(("target", "verdict", "said"), [
    (0.9, Verdict.PASS_WITH_LIMITATIONS, "the target is no further from golden"),
    (3.0, Verdict.INCONCLUSIVE, "too few programs run"),
])  # fmt: skip
def test_a_sample_is_judged_by_what_it_has(target, verdict, said):
    wanted, finding = plan_and_judge(
        "%programs=16", scale=1.0, target_error=target, reference_error=1.0, rounding_floor=0.0
    )
    assert not any(isinstance(trial, Orders | Condition) for trial in wanted), "all programs of all seeds would run"
    assert finding.verdict is verdict
    assert said in finding.detail


def test_a_whole_run_is_asked_for_more():
    wanted, finding = plan_and_judge("", scale=1.0, target_error=0.9, reference_error=1.0, rounding_floor=0.0)
    assert Orders() in wanted
    assert finding.verdict is Verdict.INCONCLUSIVE


def test_where_the_gate_says_something_it_judges_a_sample_too():
    errors = {"scale": 100.0, "reference_error": 1.0, "rounding_floor": 0.0}
    assert plan_and_judge("%programs=16", target_error=1.9, **errors)[1].verdict is Verdict.PASS
    assert plan_and_judge("%programs=16", target_error=2.1, **errors)[1].verdict is Verdict.FAIL
