"""A bias that another draw does not confirm is the rounding of one shared number; one that every draw has is a bias."""

from dataclasses import replace

import pytest
import torch

from opcheck import Case, Sample
from opcheck.checks.bias import CONFIRMING, Bias, BiasLimits
from opcheck.checks.protocol import Subject
from opcheck.core.case import Dims
from opcheck.core.outcome import Compare
from opcheck.core.policy import Contract
from opcheck.core.verdict import Verdict
from opcheck.registry import described
from opcheck.run.execute import Executor

CONTRACT = Contract(name="t::scaled", kind="contraction", dtypes=("bfloat16",), dims=("rows", "cols"))
CASE = Case(op="t::scaled", dtype="bfloat16", dims=Dims(rows=32, cols=64), grads="x")


def samples(case: Case) -> Sample:
    """Draw x, and a scale a little below or above the middle of two neighbours in bfloat16."""
    above = torch.rand((), generator=case.generator) < 0.5
    return Sample(case.tensor("rows", "cols", name="x"), 1 + (1.1 if above else 0.9) * 2**-8)


def reference(x, scale):
    return (x.float() * scale).to(x.dtype)


def rounded_scale(x, scale):
    return (x.float() * torch.tensor(scale, dtype=torch.bfloat16).float()).to(x.dtype)


def smaller(x, scale):
    return (x.float() * scale * (1 - 2**-8)).to(x.dtype)


def judged(target):
    """Return what the check says of the output after the first comparison, and after what it asked for then."""
    spec = replace(
        described(target, "t::scaled"),
        reference=reference,
        golden=lambda x, scale: x * scale,
        samples=samples,
    )
    subject, check = Subject(contract=CONTRACT, case=CASE, representative=False, mutated=()), Bias()
    executor = Executor(spec, CONTRACT, torch.device("cpu"), lambda case, label, role: None)

    def limits(dtype):
        return BiasLimits()

    seen = dict(executor.execute(CASE, [Compare()]))
    first = check.judge(subject, seen, limits)
    asked = check.plan(subject, seen, limits)
    assert asked == (CONFIRMING,)
    seen |= executor.execute(CASE, asked)
    then = check.judge(subject, seen, limits)
    return tuple(next(item for item in found if item.tensor == "out") for found in (first, then))


def test_a_scale_that_is_rounded_goes_either_way_and_is_no_bias():
    first, then = judged(rounded_scale)
    assert first.verdict is Verdict.FAIL, "the draw is not biased by itself: the test shows nothing"
    assert then.verdict is Verdict.PASS
    assert then.detail.endswith("one number that all elements share is rounded, which goes either way")


def test_what_every_draw_shows_is_a_bias():
    first, then = judged(smaller)
    assert (first.verdict, then.verdict) == (Verdict.FAIL, Verdict.FAIL)
    assert "as much that way in 5 of 5 more draws" in then.detail


def test_nothing_more_is_drawn_where_nothing_is_biased():
    with pytest.raises(AssertionError, match=r"\(\) == "):
        judged(reference)
