"""Runs between bands: targets that write or read beside their tensors are told from those that do not, on the CPU."""

import ctypes

import pytest
import torch

from opcheck import Sample
from opcheck.core.case import Case, Dims
from opcheck.core.guards import Banded, Guarded, Swayed, Unwritten
from opcheck.core.outcome import Raised, Returned
from opcheck.core.policy import Contract
from opcheck.core.spec import Argument, OpSpec
from opcheck.run.execute import Executor

CASE = Case(op="t::op", dtype="float32", dims=Dims(rows=4, cols=6))
COUNT = 24


def samples(case):
    return Sample(case.tensor("rows", "cols", name="x"))


def outcome(target, *, mutated=False, nondeterministic=False):
    """Run a target of one tensor `[4, 6]` between bands."""
    spec = OpSpec(
        name="t::op", target=target, reference=target, golden=target, samples=samples,
        arguments=(Argument(name="x", kind="tensor", mutated=mutated),),
    )  # fmt: skip
    contract = Contract(
        name="t::op", kind="elementwise", dtypes=("float32",), dims=("rows", "cols"),
        deterministic_forward=not nondeterministic,
    )  # fmt: skip
    executor = Executor(spec, contract, torch.device("cpu"), lambda case, label, role: None)
    return executor.execute(CASE, (Guarded(),))[Guarded()]


def banded(target, **settings):
    found = outcome(target, **settings)
    assert isinstance(found, Returned), found
    assert isinstance(found.evidence, Banded)
    return found.evidence


def found_in(found):
    return found.trespasses, found.unwritten, found.swayed


def copy(source, target, count):
    """Copy `count` floats from one tensor to another, as a kernel does: by address, whatever lies there."""
    ctypes.memmove(target.data_ptr(), source.data_ptr(), 4 * count)


class Scale(torch.autograd.Function):
    """`3 * x` with a backward that may write `extra` elements too many."""

    extra = 0

    @staticmethod
    def forward(ctx, x):
        return 3.0 * x

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        copy(3.0 * grad.contiguous(), out, COUNT)
        ctypes.memset(out.data_ptr() + 4 * COUNT, 0, 4 * Scale.extra)
        return out


def written_whole(x):
    out = torch.empty(x.shape)
    copy(x.detach().contiguous(), out, COUNT)
    return out


def accumulated_in_zeros(x):
    out = torch.zeros(x.shape)
    out += x.detach()
    return out


def read_behind_and_thrown_away(x):
    padded = torch.empty(COUNT + 8)
    copy(x.detach().contiguous(), padded, COUNT + 8)
    return padded[:COUNT].clone().reshape(x.shape)


def drawn(x):
    return x.detach() * (torch.rand(x.shape) > 0.5)


def scratch_never_read(x):
    torch.empty(100)
    return 3.0 * x.detach()


@pytest.mark.parametrize("target", [
    lambda x: 3.0 * x, Scale.apply, written_whole, accumulated_in_zeros, read_behind_and_thrown_away, drawn,
    scratch_never_read, lambda x: x.detach(), lambda x: x.detach().t(),
])  # fmt: skip
def test_right_targets(target):
    found = banded(target)
    assert found_in(found) == ((), (), ())
    assert found.given >= 1
    assert found.launches == ()
    assert found.kernels is None


def test_a_store_behind_an_allocation():
    def target(x):
        out = torch.empty(x.shape)
        copy(x.detach().contiguous(), out, COUNT + 3)
        return out

    (item,) = banded(target).trespasses
    assert (item.side, item.offset) == ("behind", COUNT)
    assert 9 <= item.count <= 12
    line = target.__code__.co_firstlineno + 1
    assert item.tensor.startswith("allocation 1, float32 [4, 6] at ")
    assert item.tensor.endswith(f"test_guarded.py:{line}")


def test_a_store_before_an_input():
    def target(x):
        ctypes.memset(x.data_ptr() - 8, 0, 8)
        return 3.0 * x

    (item,) = banded(target).trespasses
    assert (item.tensor, item.side, item.offset, item.count) == ("x", "before", -1, 8)


def test_a_store_behind_what_the_backward_allocates(monkeypatch):
    monkeypatch.setattr(Scale, "extra", 1)
    (item,) = banded(Scale.apply).trespasses
    assert (item.side, item.offset, item.count) == ("behind", COUNT, 4)
    assert item.tensor.startswith("allocation 1, float32 [4, 6] at ")


def test_a_store_beside_an_upstream_gradient():
    class Overwrites(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 3.0 * x

        @staticmethod
        def backward(ctx, grad):
            ctypes.memset(grad.data_ptr() + 4 * COUNT, 0, 2)
            return 3.0 * grad

    (item,) = banded(Overwrites.apply).trespasses
    assert (item.tensor, item.side, item.offset) == ("grad:out", "behind", COUNT)


def test_a_store_beside_an_argument_that_is_written_into():
    def target(x):
        ctypes.memset(x.data_ptr() + 4 * COUNT, 0, 4)
        x.mul_(3.0)

    def right(x):
        x.mul_(3.0)

    found = banded(target, mutated=True)
    assert [(item.tensor, item.offset) for item in found.trespasses] == [("x", COUNT)]
    assert found_in(banded(right, mutated=True)) == ((), (), ())


def test_a_result_that_is_left_as_allocated():
    def target(x):
        out = torch.empty(x.shape)
        copy(x.detach().contiguous(), out, COUNT - 2)
        return out

    assert found_in(banded(target)) == ((), (Unwritten(tensor="out", offset=22, count=2, total=COUNT),), ())


def test_a_result_that_depends_on_what_was_allocated():
    def target(x):
        partial = torch.empty(6)
        return 3.0 * x.detach() + partial.nan_to_num(0.0)

    assert banded(target).swayed == (Swayed(tensor="out", by="poison", offset=0, count=COUNT, total=COUNT),)


def read_behind(x):
    held = torch.zeros(COUNT + 1)
    copy(x.detach().contiguous(), held, COUNT + 1)
    return held[1:].reshape(x.shape).clone()


def test_a_result_that_depends_on_what_lies_behind_an_input():
    assert banded(read_behind).swayed == (Swayed(tensor="out", by="bands", offset=23, count=1, total=COUNT),)


class Drifts:
    """A target whose results differ from run to run, as atomics' do; it may read behind its input, too."""

    def __init__(self, compute):
        self.compute, self.calls = compute, 0

    def __call__(self, x):
        self.calls += 1
        return self.compute(x) * (1.0 + self.calls * 1e-6)


@pytest.mark.parametrize("declared", [True, False])
def test_results_that_drift_are_judged_by_nan_alone(declared):
    assert banded(Drifts(lambda x: 3.0 * x.detach()), nondeterministic=declared).swayed == ()
    (item,) = banded(Drifts(read_behind), nondeterministic=declared).swayed
    assert item == Swayed(tensor="out", by="bands", offset=23, count=1, total=COUNT, nan_only=True)


def test_what_the_target_raises_is_its_outcome():
    def target(x):
        raise ArithmeticError("no")

    found = outcome(target)
    assert isinstance(found, Raised)
    assert (found.error, found.message) == ("ArithmeticError", "no")
