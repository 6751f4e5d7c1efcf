"""A bias that another draw does not confirm is the rounding of one shared number; one that every draw has is a bias."""

import pytest
import torch

import opcheck
from opcheck import Case, Sample
from opcheck.core.verdict import Verdict

DIMS = {"rows": 32, "cols": 64}


def samples(case: Case) -> Sample:
    return Sample(case.tensor("rows", "cols", name="x"), case.tensor(name="scale", dtype="float32"))


def reference(x, scale):
    return (x.float() * scale).to(x.dtype)


def rounded_scale(x, scale):
    return (x.float() * scale.to(torch.bfloat16).float()).to(x.dtype)


def always_smaller(x, scale):
    return (x.float() * scale * (1 - 2**-8)).to(x.dtype)


def bias_of(target, seed):
    report = opcheck.verify(
        target, reference, samples, dims=DIMS, dtypes=("bfloat16",), kind="contraction", no_grad=("x", "scale"),
        seed=seed, quiet=True, raises=False,
    )  # fmt: skip
    return next(
        item
        for case in report.ops[0].cases
        for item in case.findings
        if item.check == "bias" and item.tensor.startswith("out")
    )


def test_a_scale_that_is_rounded_goes_either_way_and_is_no_bias():
    found = [bias_of(rounded_scale, seed) for seed in range(3)]
    assert [item.verdict for item in found] == [Verdict.PASS] * 3
    unconfirmed = [item for item in found if "of 5 more draws" in item.detail]
    assert unconfirmed, "no draw was biased by itself: the test shows nothing"
    assert "which goes either way" in unconfirmed[0].detail


@pytest.mark.parametrize("seed", range(2))
def test_what_every_draw_shows_is_a_bias(seed):
    found = bias_of(always_smaller, seed)
    assert found.verdict is Verdict.FAIL
    assert "as much that way in 5 of 5 more draws" in found.detail
