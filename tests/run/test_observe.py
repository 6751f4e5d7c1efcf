"""The first repeat is the observed run; without repeats there is one run more, and none where nothing can be seen."""

import pytest
import torch

from opcheck import Sample
from opcheck.backends.interpreter.repair import Repair
from opcheck.core.case import Case, Dims
from opcheck.core.memory import Observe, Observed
from opcheck.core.outcome import Digests, Raised, Repeat, Returned
from opcheck.core.policy import Contract
from opcheck.core.spec import Argument, OpSpec
from opcheck.run import observe
from opcheck.run.execute import Executor

CASE = Case(op="t::op", dtype="float32", dims=Dims(rows=4, cols=6))
CONTRACT = Contract(name="t::op", kind="elementwise", dtypes=("float32",), dims=("rows", "cols"))


def samples(case):
    return Sample(case.tensor("rows", "cols", name="x"))


def reference(x):
    return 3.0 * x


class Target:
    """An eager op that counts its calls."""

    def __init__(self, compute):
        self.compute, self.calls = compute, 0

    def __call__(self, x):
        self.calls += 1
        return self.compute(x)


def executed(target, *trials, device="cpu"):
    spec = OpSpec(
        name="t::op", target=target, reference=reference, golden=reference, samples=samples,
        arguments=(Argument(name="x", kind="tensor"),),
    )  # fmt: skip
    executor = Executor(spec, CONTRACT, torch.device(device), lambda case, label, role: None)
    return executor.execute(CASE, trials)


@pytest.fixture
def sighted(monkeypatch):
    """Nothing here is a Triton kernel, so that it does not matter whether the interpreter is repaired."""
    monkeypatch.setattr(observe, "sight", lambda: (True, ""))


@pytest.mark.parametrize("trials", [(Observe(), Repeat(count=3)), (Repeat(count=3), Observe())])
def test_a_repeat_is_the_observed_run(sighted, trials):
    target = Target(reference)
    found = executed(target, *trials)
    assert target.calls == 3
    assert found[Observe()] == Returned(evidence=Observed())
    digests = found[Repeat(count=3)].evidence
    assert isinstance(digests, Digests)
    assert len(set(digests.runs)) == 1


def test_without_repeats_there_is_one_run(sighted):
    target = Target(reference)
    assert executed(target, Observe()) == {Observe(): Returned(evidence=Observed())}
    assert target.calls == 1


def half_written(x):
    out = torch.empty(x.shape)
    out[:2] = 3.0 * x[:2]
    return out


def test_what_is_returned_unwritten_is_seen_in_eager_code_too(sighted):
    (breach,) = executed(Target(half_written), Observe())[Observe()].evidence.breaches
    assert (breach.rule, breach.tensor, breach.offset, breach.count, breach.total) == ("returned", "out", 12, 12, 24)


def test_the_next_case_is_observed_anew(sighted):
    target = Target(reference)
    executed(target, Observe(), Repeat(count=1))
    executed(target, Observe())
    assert target.calls == 2


def test_what_the_target_raises_is_its_outcome(sighted):
    def raising(x):
        raise ArithmeticError("no")

    outcome = executed(Target(raising), Observe())[Observe()]
    assert isinstance(outcome, Raised)
    assert (outcome.error, outcome.message) == ("ArithmeticError", "no")


def test_an_interpreter_that_is_not_repaired_shows_nothing(monkeypatch):
    state = Repair(active=False, reason="Triton 9.9 lacks what the repair replaces.", triton="9.9")
    monkeypatch.setattr("opcheck.backends.interpreter.repair.state", lambda: state)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    target = Target(reference)
    assert executed(target, Observe())[Observe()].evidence.blind == state.reason
    assert target.calls == 0
    executed(target, Observe(), Repeat(count=2))
    assert target.calls == 2


def test_where_nothing_is_interpreted_no_kernel_runs(monkeypatch):
    monkeypatch.setattr("opcheck.backends.interpreter.repair.state", lambda: None)
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    assert executed(Target(reference), Observe()) == {Observe(): Returned(evidence=Observed())}
