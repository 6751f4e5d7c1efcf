"""A few programs of a large grid run, and what they wrote is compared: right kernels pass, wrong ones do not."""

import pytest
import torch
import triton
import triton.language as tl

from opcheck import Sample
from opcheck.backends.interpreter import install, sampling
from opcheck.backends.interpreter.sampling import sampled
from opcheck.core.case import Case, Dims
from opcheck.core.memory import Observe
from opcheck.core.outcome import Compare, Compared, Returned, Siblings
from opcheck.core.policy import Contract
from opcheck.core.spec import Argument, OpSpec
from opcheck.run.execute import Executor
from opcheck.run.poison import NAN, poisoned

assert install().active

ROWS, COLS = 65_537, 3
CONTRACT = Contract(name="t::op", kind="elementwise", dtypes=("float32",), dims=("rows", "cols"))


@triton.jit
def tripled(x, y, rows, cols, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    here = row & 0xFFFF if WRONG == "16 bits" else row
    value = tl.load(x + here * cols + at, mask=at < cols, other=0.0)
    if WRONG == "last" and row == rows - 1:
        value += 1.0
    if WRONG == "outside" and row == rows - 1:
        at += 1
    tl.store(y + row * cols + at, 3.0 * value, mask=at < cols + (WRONG == "outside"))


@triton.jit
def sums(x, parts, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(parts + row, tl.sum(tl.load(x + row * cols + at, mask=at < cols, other=0.0)))


@triton.jit
def gathered(parts, y, rows, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(parts + at, mask=at < rows, other=0.0))
    tl.store(y, total)


@triton.jit
def added(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.atomic_add(y + at, tl.load(x + row * cols + at, mask=at < cols, other=0.0), mask=at < cols)


def launch_tripled(x, wrong, out):
    tripled[(x.shape[0],)](x, out, *x.shape, BLOCK=4, WRONG=wrong)
    return out


class Op(torch.autograd.Function):
    """3 x, with the backward of the kernel, wrong as `Op.wrong` says."""

    wrong = ""

    @staticmethod
    def forward(ctx, x):
        return launch_tripled(x, Op.wrong, torch.empty_like(x))

    @staticmethod
    def backward(ctx, grad):
        return launch_tripled(grad.contiguous(), "", torch.zeros_like(grad))


def executed(target, reference, *trials, rows=ROWS):
    spec = OpSpec(
        name="t::op", target=target, reference=reference, golden=reference,
        samples=lambda case: Sample(case.tensor("rows", "cols", name="x")),
        arguments=(Argument(name="x", kind="tensor"),),
    )  # fmt: skip
    case = Case(op="t::op", dtype="float32", dims=Dims(rows=rows, cols=COLS), variant="%programs=16")
    executor = Executor(spec, CONTRACT, torch.device("cpu"), lambda case, label, role: None)
    found = executor.execute(case, (Compare(),)) | executor.execute(case, trials or (Observe(),))
    return [outcome.evidence if isinstance(outcome, Returned) else outcome for outcome in found.values()]


def times_three(x):
    return 3.0 * x


def test_what_the_chosen_programs_wrote_is_compared_forward_and_backward():
    Op.wrong = ""
    compared, errors, observed = executed(Op.apply, times_three, Observe(), Siblings(count=8))
    assert isinstance(compared, Compared)
    assert compared.misfits == ()
    for name in ("out", "grad x"):
        item = compared.find(name)
        assert (item.judged, item.target_error <= 4 * item.reference_error + 1e-6) == (16 * COLS, True)
        assert not item.misplaced
    assert observed.breaches == ()
    assert observed.sample.launches == (("tripled", 16, ROWS), ("tripled", 16, ROWS))
    assert observed.sample.compared == (("out", 48, ROWS * COLS), ("grad x", 48, ROWS * COLS))
    assert (observed.sample.left, observed.sample.dependent) == ((), ())
    assert {item.tensor: item.judged for item in errors.tensors} == {"out": 48 + 65537, "grad x": 48 + 65537}


@pytest.mark.parametrize("wrong", ["last", "16 bits"])
def test_a_kernel_that_is_wrong_in_the_last_program_only_is_caught(wrong):
    Op.wrong = wrong
    compared, observed = executed(Op.apply, times_three)
    assert compared.find("out").target_error > 0.01
    assert compared.find("grad x").target_error < 1e-6
    assert observed.breaches == ()


def test_a_last_program_that_leaves_the_memory_is_told():
    Op.wrong = "outside"
    _, observed = executed(Op.apply, times_three)
    assert {(item.rule, item.program) for item in observed.breaches} == {("outside", (ROWS - 1, 0, 0))}


def test_a_small_grid_runs_whole():
    Op.wrong = ""
    compared, observed = executed(Op.apply, times_three, rows=9)
    assert compared.find("out").judged == 27
    assert observed.sample.launches == (("tripled", 9, 9), ("tripled", 9, 9))


def two_steps(x):
    parts, out = x.new_empty(x.shape[0]), x.new_empty(1)
    sums[(x.shape[0],)](x.detach(), parts, COLS, BLOCK=4)
    gathered[(1,)](parts, out, x.shape[0], BLOCK=1024)
    return out


def by_atomics(x):
    out = x.new_zeros(COLS)
    added[(x.shape[0],)](x.detach(), out, COLS, BLOCK=4)
    return out


def through_torch(x):
    parts = x.new_empty(x.shape[0])
    sums[(x.shape[0],)](x.detach(), parts, COLS, BLOCK=4)
    return parts.sum()


def through_torch_and_back(x):
    parts = x.new_empty(x.shape[0])
    sums[(x.shape[0],)](x.detach(), parts, COLS, BLOCK=4)
    out = x.new_empty(x.shape[0])
    sums[(x.shape[0],)]((parts[:, None] * 1.0).expand(-1, COLS).contiguous(), out, COLS, BLOCK=4)
    return out


@pytest.mark.parametrize(("target", "reference", "dependent"), [
    (two_steps, lambda x: x.detach().sum().reshape(1), ("gathered",)),
    (by_atomics, lambda x: x.detach().sum(0), ("added",)),
    (through_torch, lambda x: x.detach().sum(), ()),
    (through_torch_and_back, lambda x: 3.0 * x.detach().sum(1), ("sums",)),
])  # fmt: skip
def test_what_needs_the_programs_that_were_left_out_is_not_compared(target, reference, dependent):
    compared, observed = executed(target, reference, rows=2048)
    assert (compared.tensors, compared.misfits) == ((), ())
    assert [name for name, _ in observed.sample.left] == ["out"]
    assert observed.sample.dependent == dependent
    assert observed.breaches == ()


@pytest.mark.parametrize(("target", "reference"), [
    (two_steps, lambda x: x.detach().sum().reshape(1)),
    (by_atomics, lambda x: x.detach().sum(0)),
    (through_torch, lambda x: x.detach().sum()),
])  # fmt: skip
def test_with_all_programs_it_is(target, reference):
    compared, observed = executed(target, reference, rows=16)
    assert (compared.find("out").judged, observed.sample.left) == (compared.find("out").numel, ())


def raising(x):
    parts = x.new_empty(x.shape[0])
    sums[(x.shape[0],)](x.detach(), parts, COLS, BLOCK=4)
    if parts.isnan().any():
        raise ArithmeticError("NaN")
    return parts


def into_a_copy(x):
    out = torch.empty_like(x).copy_(x)
    added[(1,)](x.detach(), out, COLS, BLOCK=4)
    return out


def test_where_no_program_is_left_out_what_the_host_wrote_may_be_added_to():
    def first_row_doubled(x):
        return torch.cat((2 * x.detach()[:1], x.detach()[1:]))

    compared, observed = executed(into_a_copy, first_row_doubled)
    assert (compared.find("out").judged, compared.find("out").target_error) == (ROWS * COLS, 0.0)
    assert (observed.sample.left, observed.breaches) == ((), ())


def test_what_the_host_makes_of_the_poison_is_not_the_kernels_fault():
    compared, observed = executed(raising, lambda x: x.detach().sum(1), rows=64)
    assert (compared.tensors, compared.misfits) == ((), ())
    ((what, why),) = observed.sample.left
    assert what == "the rest"
    assert "ArithmeticError" in why


def test_programs_that_loop_over_everything_are_stopped(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_ACCESSES", 100)
    compared, observed = executed(two_steps, lambda x: x.detach().sum().reshape(1), rows=200_000)
    assert (compared.tensors, compared.misfits) == ((), ())
    ((what, why),) = observed.sample.left
    assert (what, "more than 100 accesses" in why) == ("the rest", True)


def test_a_raise_before_any_launch_is_its_fault():
    def refusing(x):
        raise ArithmeticError("no")

    outcome = executed(refusing, times_three, rows=64)[0]
    assert (outcome.error, outcome.role) == ("ArithmeticError", "target")


def test_in_place_what_was_left_out_is_stale():
    x = torch.ones(64, COLS)
    with sampled((), 4, 0) as (sampler, _), poisoned(NAN, allocated=sampler.allocated):
        sampler.keep("x", x, writable=True)
        launch_tripled(x, "", x)
        assert sampler.covered(x).sum() == 4 * COLS
        y = torch.empty(64)
        sums[(64,)](x, y, COLS, BLOCK=4)
        assert sampler.covered(y).sum() == 4  # equal grids have equal programs
        z = torch.empty(1)
        gathered[(1,)](x, z, 64 * COLS, BLOCK=64)
        assert not sampler.covered(z).any()
    assert x.sum() == 64 * COLS + 2 * 4 * COLS
