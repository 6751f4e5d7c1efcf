"""A gradient that is 0 whatever comes in is judged by its size elsewhere: roundings pass, anything larger fails."""

from dataclasses import replace

import pytest
import torch

from opcheck import Case, Sample
from opcheck.checks import all_checks
from opcheck.checks.protocol import Subject
from opcheck.core.case import Dims
from opcheck.core.outcome import Compare, Siblings
from opcheck.core.policy import Contract
from opcheck.core.verdict import Verdict
from opcheck.registry import described
from opcheck.run.execute import Executor

CONTRACT = Contract(name="t::softmax", kind="normalization", dtypes=("float32", "bfloat16"), dims=("rows", "cols"))
# One column has a probability of 1 and a gradient of 0.
CASE = Case(op="t::softmax", dtype="float32", dims=Dims(rows=3, cols=1))


def samples(case: Case) -> Sample:
    return Sample(case.tensor("rows", "cols", name="x"))


def golden(x):
    return torch.softmax(x, -1)


def with_noise(noise):
    """Return a softmax whose gradient is off by a constant, as a fraction of the float32 rounding of 1."""

    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = golden(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return y * (grad - (y * grad).sum(-1, keepdim=True)) + noise * 2**-24

    return lambda x: Noisy.apply(x)


def judged(target, case):
    """Return the worst verdict on grad x, and the siblings that were asked for."""
    spec = replace(described(target, "t::softmax"), reference=golden, golden=golden, samples=samples)
    subject = Subject(contract=CONTRACT, case=case, representative=False, mutated=())
    executor = Executor(spec, CONTRACT, torch.device("cpu"), lambda case, label, role: None)
    seen = dict(executor.execute(case, [Compare()]))
    verdicts = []
    for name in ("numerics", "slices"):
        check = all_checks()[name]

        def limits(dtype, check=check):
            return check.limits()

        seen |= executor.execute(case, [trial for trial in check.plan(subject, seen, limits) if trial not in seen])
        verdicts += [item.verdict for item in check.judge(subject, seen, limits) if item.tensor == "grad x"]
    assert verdicts
    asked = [trial for trial in seen if isinstance(trial, Siblings)]
    return max(verdicts, key=list(Verdict).index), asked[0].vanished if asked else ()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("noise", "passes"), [(0.0, True), (1.0, True), (-1.0, True), (64.0, False), (2.0**20, False)])
def test_a_gradient_that_is_always_0(dtype, noise, passes):
    verdict, vanished = judged(with_noise(noise), replace(CASE, dtype=dtype))
    assert (verdict is Verdict.PASS) == passes
    assert vanished == (("grad x",) if noise else ())


def test_one_that_is_only_small_is_asked_for_its_digits():
    small = replace(CASE, dims=Dims(rows=3, cols=7), layout="grad:out=ones")
    assert judged(with_noise(0.0), small)[0] is Verdict.PASS
    usual = replace(CASE, dims=Dims(rows=3, cols=7))
    assert judged(with_noise(64.0), usual) == (Verdict.FAIL, ())
