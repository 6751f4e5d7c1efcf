"""Strides of gradients are compared where torch's own fakes order the axes as its kernels do."""

from dataclasses import replace

import pytest

from opcheck.checks.fakes import check
from opcheck.checks.protocol import example
from opcheck.core.forms import Faked, FakeRun, Form
from opcheck.core.outcome import Compare, Compared, Returned
from opcheck.core.verdict import Verdict


def judged(tensor, layout, fake):
    plain = example()
    subject = replace(plain, case=replace(plain.case, layout=layout))

    def form(strides):
        return Form(tensor=tensor, shape=(5, 129), strides=strides, dtype="float32", device="cpu")

    seen = {
        Compare(): Returned(evidence=Compared(tensors=(), forms=(form((1, 5)),))),
        FakeRun(): Returned(evidence=Faked(forms=(form(fake),))),
    }
    (finding,) = check.judge(subject, seen, lambda dtype: check.limits())
    return finding.verdict


@pytest.mark.parametrize(
    ("tensor", "layout", "verdict"),
    [
        ("out", "", Verdict.FAIL),
        ("out", "x=padded", Verdict.FAIL),
        ("grad x", "", Verdict.FAIL),
        ("grad x", "x=transposed+grad:out=ones", Verdict.FAIL),
        ("grad x", "x=transposed+grad:out=expanded", Verdict.PASS),
        ("grad x", "x=padded+grad:out=transposed", Verdict.PASS),
    ],
)
def test_other_strides(tensor, layout, verdict):
    assert judged(tensor, layout, (129, 1)) is verdict
    assert judged(tensor, layout, (1, 5)) is Verdict.PASS
