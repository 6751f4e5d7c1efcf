"""The laws of random ops at their limits, and what other checks leave to them."""

from dataclasses import replace

import pytest

from opcheck.auditor import judge
from opcheck.checks import all_checks
from opcheck.checks.protocol import example
from opcheck.core.draws import Changes, Drawing, Drawn, Draws, Kept, Tie, Values
from opcheck.core.measured import Element, Measured, Misplaced
from opcheck.core.outcome import Compare, Compared, Crashed, Misfit, Raised, Returned
from opcheck.core.policy import Policy
from opcheck.core.verdict import Verdict

PASS, LIMITED, INCONCLUSIVE, FAIL = Verdict
CHECKS = all_checks()
CHECK = CHECKS["randomness"]
TRIAL = Draws(runs=16, max_ulp=2.0)
AT = Element(index=(2, 1), golden=0.0, reference=2.0, target=1.0)
HALF = Kept(target=(190, 200) * 8, reference=(196, 192) * 8, eligible=387)
GOOD = Drawn(tensor="out", dtype="float32", numel=387, kept=HALF, values=Values(agreeing=2700, compared=387))


def subject(**changes):
    found = example("elementwise")
    return replace(found, contract=replace(found.contract, random=True, **changes))


def finding(item, *ties, of=None):
    evidence = Returned(evidence=Drawing(tensors=(item,), ties=ties, repeats=2))
    (one,) = judge({"randomness": CHECK}, of or subject(), {TRIAL: evidence}, Policy())
    return one


@pytest.mark.parametrize(("changes", "expected"), [
    (Changes(target=0, reference=29), PASS),
    (Changes(target=0, reference=30), FAIL),
    (Changes(target=1, reference=30), PASS),
    (Changes(target=0, reference=0), PASS),  # p = 0, or a seed that is an argument
    (Changes(target=0, reference=4, always=True), FAIL),  # noise: one history for all elements
])  # fmt: skip
@pytest.mark.parametrize(("field", "hint"), [
    ("across", "the seed is not used"), ("in_a_row", "the offset of the generator does not advance"),
])  # fmt: skip
def test_numbers_advance_where_the_references_do(field, hint, changes, expected):
    found = finding(replace(GOOD, **{field: changes}))
    assert found.verdict is expected
    assert found.looks_like.startswith(hint if expected is FAIL else "")


def test_a_target_that_never_changes_is_told_so_once_and_its_rate_is_no_second_fault():
    stuck = Changes(target=0, reference=190)
    rate = replace(HALF, target=(90,) * 16)
    found = finding(replace(GOOD, across=stuck, in_a_row=stuck, kept=rate))
    assert found.detail == "no bit differs from one seed to the next; the reference's change"


@pytest.mark.parametrize(("deterministic", "expected"), [(True, FAIL), (False, PASS)])
def test_equal_bits_under_one_seed_unless_declared_otherwise(deterministic, expected):
    assert finding(replace(GOOD, unequal=1), of=subject(deterministic_forward=deterministic)).verdict is expected


@pytest.mark.parametrize(("kept", "expected", "hint"), [
    (HALF, PASS, ""),
    # 387 elements, 16 runs, shares 0.25 and 0.75: tens of standard deviations.
    (Kept(target=(97, 95) * 8, reference=(290, 292) * 8, eligible=387), FAIL, "elements are kept with p instead of 1"),
    (Kept(target=(97, 95) * 8, reference=(196, 192) * 8, eligible=387), FAIL, "another threshold"),
    (Kept(target=(387,) * 16, reference=(387,) * 16, eligible=387, fixed=True), PASS, ""),
    (Kept(target=(0,) * 16, reference=(387,) * 16, eligible=387, fixed=True), FAIL, "p instead of 1 - p"),
    (Kept(target=(10, 380) * 8, reference=(190, 200) * 8, eligible=387), PASS, ""),
    # One stream only: each has the mask that it happens to have.
    (Kept(target=(180,) * 16, reference=(200,) * 16, eligible=387, fixed=True), PASS, ""),
    # One element, 16 runs of either.
    (Kept(target=(1,) * 15 + (0,), reference=(1,) * 4 + (0,) * 12, eligible=1), PASS, ""),
    (Kept(target=(0,) * 16, reference=(0,) * 16, eligible=0), PASS, ""),
])  # fmt: skip
def test_the_rate(kept, expected, hint):
    found = finding(replace(GOOD, kept=kept))
    assert found.verdict is expected
    assert hint in found.looks_like


def test_the_measured_rates_are_said():
    found = finding(replace(GOOD, kept=Kept(target=(100,) * 8 + (94,) * 8, reference=(200, 188) * 8, eligible=388)))
    assert "keeps 0.2500 of 388 elements over 16 seeds, the reference 0.5000" in found.detail
    assert found.numbers["keep_rate"] == 0.25
    assert found.numbers["reference_keep_rate"] == 0.5


@pytest.mark.parametrize(("values", "expected", "hint"), [
    (Values(agreeing=64, compared=9, excess=1.0, worst=AT), PASS, ""),
    (Values(agreeing=64, compared=9, excess=1.1, worst=AT, ratio=0.9), FAIL, "something else"),
    (Values(agreeing=63, compared=9, excess=1.1, worst=AT), PASS, ""),  # by chance, say
    (Values(agreeing=99, compared=9, excess=9.0, worst=AT, ratio=0.5), FAIL, "not scaled by 1 / (1 - p)"),
    (Values(steady=False, agreeing=99, compared=9, excess=9.0, worst=AT), LIMITED, ""),
])  # fmt: skip
def test_the_scale(values, expected, hint):
    found = finding(replace(GOOD, values=values))
    assert found.verdict is expected
    assert hint in found.looks_like


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, PASS),
    ({"forward": 1}, FAIL),
    ({"backward": 1}, FAIL),
    ({"backward": 1, "reference": 1}, PASS),
    ({"backward": 1, "dropped": 29}, PASS),
    ({"backward": 1, "kept": 29}, PASS),
])  # fmt: skip
def test_one_mask_both_ways(changes, expected):
    tie = Tie(output="out", gradient="grad x", **{"dropped": 30, "kept": 30, "total": 60, "first": (0, 1)} | changes)
    found = finding(replace(GOOD, tensor="grad x"), tie)
    assert found.verdict is expected
    assert (found.looks_like == "the backward draws a mask of its own") is (expected is FAIL)
    assert finding(GOOD, tie).verdict is PASS, "it is the gradient's fault"


@pytest.mark.parametrize(("lost", "expected"), [
    (Crashed(role="target", reason="was killed by SIGSEGV"), FAIL),
    (Raised(role="reference", phase="forward", error="ValueError", message="no"), INCONCLUSIVE),
])  # fmt: skip
def test_a_run_that_does_not_come_back(lost, expected):
    (found,) = judge({"randomness": CHECK}, subject(), {TRIAL: lost}, Policy())
    assert found.verdict is expected


def test_it_runs_only_where_the_op_is_declared_random_and_tensors_are_comparable():
    assert CHECK.applies(subject()) == ""
    assert CHECK.applies(example()) == "the op is not declared random"
    item = Measured(tensor="out", dtype="float32", shape=(3, 129), judged=387)
    limits = CHECK.limits()
    for evidence, wanted in (
        (Compared(tensors=(item,)), (TRIAL,)),
        (Compared(tensors=(), misfits=(Misfit(tensor="out", problem="shape"),)), ()),
    ):
        seen = {Compare(): Returned(evidence=evidence)}
        assert CHECK.plan(subject(), seen, lambda dtype: limits) == wanted


@pytest.mark.parametrize("name", ["numerics", "slices", "ulp", "bias"])
def test_what_compares_with_golden_one_to_one_leaves_it_to_randomness(name):
    assert CHECKS[name].applies(example("elementwise")) == ""
    reason = "the op is declared random: the check randomness judges its values"
    assert CHECKS[name].applies(subject()) == reason


def test_structure_judges_forms_and_not_what_is_drawn():
    lost = Misplaced(kind="Inf missing", count=1, first=AT)
    items = (
        Measured(tensor="out 0", dtype="float32", shape=(3, 129), judged=386, misplaced=(lost,), overflow_gap=9.0),
        Measured(tensor="out 1", dtype="bool", shape=(3, 129), judged=387, unequal=200, worst=(AT,)),
    )
    check = CHECKS["structure"]
    seen = {Compare(): Returned(evidence=Compared(tensors=items))}
    assert [one.verdict for one in check.judge(subject(), seen, None)] == [PASS, PASS]
    assert [one.verdict for one in check.judge(example(), seen, None)] == [FAIL, FAIL]
    assert check.plan(subject(), seen, None) == ()
    misfit = Compared(tensors=(), misfits=(Misfit(tensor="out", problem="dtype float32 should be float16"),))
    assert [one.verdict for one in check.judge(subject(), {Compare(): Returned(evidence=misfit)}, None)] == [FAIL]
