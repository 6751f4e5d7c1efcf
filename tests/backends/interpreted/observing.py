"""Every access is looked at before it happens: bounds, what was never written, and programs that meet."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from opcheck import Case, Sample
from opcheck.backends.interpreter import install, memory
from opcheck.backends.interpreter.observer import observed
from opcheck.core.case import Dims
from opcheck.core.measure import digest_of
from opcheck.core.memory import Observe
from opcheck.core.outcome import Repeat
from opcheck.core.policy import Contract
from opcheck.core.spec import Argument, OpSpec
from opcheck.run.execute import Executor
from opcheck.run.poison import NAN, poisoned

assert install().active


@triton.jit
def copied(x, y, n, ahead, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at + ahead, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def written(y, at, value):
    tl.store(y + at, value)


@triton.jit
def added(y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(y + at, 1.0, mask=at < n)


@triton.jit
def numbered(y, STEP: tl.constexpr, VALUE: tl.constexpr):
    number = tl.program_id(0)
    tl.store(y + number * STEP, number * 1.0 if VALUE is None else VALUE)


@triton.jit
def neighbours(y, BLOCK: tl.constexpr):
    number = tl.program_id(0)
    left = tl.load(y + number)
    tl.store(y + number + 1, left + 1.0)


@triton.jit
def last_sums(parts, counter, out, n, BLOCK: tl.constexpr, COUNTED: tl.constexpr):
    number = tl.program_id(0)
    tl.store(parts + number, number + 1.0)
    done = tl.atomic_add(counter, 1) if COUNTED else number
    if done == n - 1:
        at = tl.arange(0, BLOCK)
        tl.store(out, tl.sum(tl.load(parts + at, mask=at < n, other=0.0)))


@triton.jit
def through_table(table, y, n):
    number = tl.program_id(0)
    x = tl.load(table + number).to(tl.pointer_type(tl.float32))
    tl.store(y + number, tl.load(x))


@triton.jit
def unmasked_rest(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n))


def only(observer):
    (breach,) = observer.found().breaches
    return breach


def test_inside_is_silent_and_counted():
    x, y = torch.arange(10.0), torch.zeros(10)
    with observed() as observer:
        copied[(3,)](x, y, 10, 0, BLOCK=4)
    found = observer.found()
    assert y.tolist() == x.tolist()
    assert (found.launches, found.accesses, found.breaches) == ((("copied", 1),), 6, ())


def test_a_load_behind_the_end_does_not_happen():
    x, y = torch.arange(10.0), torch.zeros(10)
    with observed() as observer:
        copied[(3,)](x, y, 10, 1 << 40, BLOCK=4)
    breach = only(observer)
    assert (breach.rule, breach.access, breach.tensor, breach.kernel) == ("outside", "load", "x", "copied")
    assert (breach.program, breach.lane, breach.offset, breach.total, breach.count) == ((0, 0, 0), 0, 1 << 40, 10, 10)
    assert breach.where.rpartition(":")[0] == __file__
    assert y.tolist() == [0.0] * 10, "what is kept back gives other"


def test_only_the_lanes_outside_are_kept_back():
    x, y = torch.arange(10.0), torch.zeros(10)
    with observed() as observer:
        copied[(3,)](x, y, 10, 3, BLOCK=4)
    breach = only(observer)
    assert (breach.program, breach.lane, breach.offset, breach.count) == ((1, 0, 0), 3, 10, 3)
    assert y.tolist() == [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("at", [-1, 4, -(1 << 40)])
def test_a_store_outside_does_not_happen(at):
    whole = torch.zeros(12)
    y = whole[4:8].clone()
    with observed() as observer:
        written[(1,)](y, at, 7.0)
    breach = only(observer)
    assert (breach.rule, breach.access, breach.offset) == ("outside", "store", at)


def test_a_pointer_that_lands_in_another_argument_is_still_outside():
    x, y = torch.arange(8.0), torch.zeros(8)
    ahead = (y.data_ptr() - x.data_ptr()) // 4
    with observed() as observer:
        copied[(2,)](x, y, 8, ahead, BLOCK=4)
    breach = only(observer)
    assert (breach.rule, breach.tensor, breach.offset, breach.count) == ("outside", "x", ahead, 8)


def test_offsets_count_from_the_view_and_its_whole_storage_may_be_touched():
    whole = torch.arange(12.0)
    y = torch.zeros(4)
    with observed() as observer:
        copied[(1,)](whole[4:8], y, 4, 4, BLOCK=4)
        assert observer.found().breaches == ()
        copied[(1,)](whole[4:8], y, 4, 5, BLOCK=4)
    breach = only(observer)
    assert (breach.offset, breach.total) == (8, 8)


def test_around_a_tensor_of_the_case_nothing_may_be_touched():
    buffer = torch.arange(15.0).view(3, 5)
    x, y = buffer[:, 1:4], torch.zeros(9)
    with observed() as observer:
        observer.keep("x", x)
        copied[(1,)](x, y, 3, 5, BLOCK=4)
        assert observer.found().breaches == (), "the second row"
        copied[(1,)](x, y, 4, 0, BLOCK=4)
    breach = only(observer)
    assert (breach.rule, breach.lane, breach.offset, breach.count) == ("around", 3, 3, 1)


def test_around_a_tensor_whose_extent_is_declared_everything_may_be_touched():
    buffer = torch.arange(15.0).view(3, 5)
    with observed({"xs"}) as observer:
        observer.keep("xs[0]", buffer[:, 1:4])
        copied[(1,)](buffer[:, 1:4], torch.zeros(9), 4, 0, BLOCK=4)
        assert observer.found().breaches == ()
        copied[(1,)](buffer[:, 1:4], torch.zeros(9), 4, 11, BLOCK=4)
    assert only(observer).rule == "outside"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8, torch.bool])
def test_what_was_never_written_is_read(dtype):
    with observed() as observer, poisoned(NAN, observer.allocated):
        x, y = torch.empty(8, dtype=dtype), torch.zeros(8, dtype=dtype)
        written[(1,)](x, 2, 1)
        copied[(1,)](x, y, 4, 0, BLOCK=4)
    breach = only(observer)
    assert (breach.rule, breach.tensor, breach.offset, breach.count) == ("unwritten", "x", 0, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8, torch.bool])
@pytest.mark.parametrize("write", [
    lambda x: x.zero_(), lambda x: x.fill_(-1), lambda x: x.copy_(torch.ones(8)),
    lambda x: torch.add(x.new_zeros(8), x.new_zeros(8), out=x),
    lambda x: x[:4].fill_(-1), lambda x: x.view(2, 4)[0].copy_(torch.full((4,), -1)),
    lambda x: x.detach().fill_(1),
])  # fmt: skip
def test_what_torch_has_written_is_written(dtype, write):
    with observed() as observer, poisoned(NAN, observer.allocated):
        x, y = torch.empty(8, dtype=dtype), torch.zeros(8, dtype=dtype)
        write(x)
        copied[(1,)](x, y, 4, 0, BLOCK=4)
        observer.returned("x", x[:4])
    assert observer.found().breaches == ()


def test_an_atomic_reads_what_was_never_written():
    with observed() as observer, poisoned(NAN, observer.allocated):
        added[(3,)](torch.empty(4), 3, BLOCK=4)
    breach = only(observer)
    assert (breach.rule, breach.access, breach.count) == ("unwritten", "atomic", 3)


def test_what_is_returned_must_be_written():
    with observed() as observer, poisoned(NAN, observer.allocated):
        y = torch.empty(3, 4)
        copied[(1,)](torch.ones(8), y, 6, 0, BLOCK=8)
        observer.returned("front", y.reshape(-1)[:6])
        assert observer.found().breaches == ()
        observer.returned("out", y.t())
    breach = only(observer)
    assert (breach.rule, breach.tensor, breach.count, breach.total) == ("returned", "out", 6, 12)
    assert breach.offset == 2, "row 0 of the transposed is written in two of its three places"


def test_two_programs_store_other_bits_in_one_place():
    with observed() as observer:
        numbered[(3,)](torch.zeros(4), STEP=0, VALUE=None)
    breach = only(observer)
    assert (breach.rule, breach.access, breach.offset, breach.program) == ("race", "store", 0, (1, 0, 0))
    assert breach.count == 2
    assert breach.other.startswith("program [0, 0, 0] stores at ")


@pytest.mark.parametrize(("step", "value"), [(1, None), (0, 2.0)])
def test_programs_that_keep_apart_or_agree_do_not_race(step, value):
    with observed() as observer:
        numbered[(3,)](torch.zeros(4), STEP=step, VALUE=value)
    assert observer.found().breaches == ()


def test_a_program_reads_what_another_one_stores():
    with observed() as observer:
        neighbours[(3,)](torch.zeros(4), BLOCK=1)
    breach = only(observer)
    assert (breach.rule, breach.access, breach.offset, breach.program) == ("race", "load", 1, (1, 0, 0))
    assert breach.other.startswith("program [0, 0, 0] stores at ")


def test_the_next_launch_may_read_what_the_last_one_stored():
    y = torch.zeros(4)
    with observed() as observer:
        numbered[(3,)](y, STEP=1, VALUE=None)
        copied[(2,)](y, torch.zeros(4), 4, 0, BLOCK=2)
    assert observer.found().breaches == ()


def test_atomics_do_not_race_with_each_other():
    y = torch.zeros(4)
    with observed() as observer:
        added[(5,)](y, 4, BLOCK=4)
    assert observer.found().breaches == ()
    assert y.tolist() == [5.0] * 4


@pytest.mark.parametrize("counted", [True, False])
def test_a_counter_orders_what_comes_before_it(counted):
    out = torch.zeros(1)
    with observed() as observer:
        last_sums[(3,)](
            torch.zeros(3), torch.zeros(1, dtype=torch.int32), out, 3, BLOCK=4, COUNTED=counted
        )  # fmt: skip
    assert out.item() == 6.0
    assert [item.rule for item in observer.found().breaches] == ([] if counted else ["race"])


def test_pointers_made_from_integers_are_left_alone():
    parts = [torch.full((1,), 3.0), torch.full((1,), 5.0)]
    table, y = torch.tensor([part.data_ptr() for part in parts]), torch.zeros(2)
    with observed() as observer:
        through_table[(2,)](table, y, 2)
    found = observer.found()
    assert y.tolist() == [3.0, 5.0]
    assert (found.breaches, found.computed) == ((), ("through_table",))


@pytest.mark.parametrize(("byte", "expected"), [(0x7B, 1.0e36), (0xFB, -1.0e36), (0xFF, float("nan"))])
def test_masked_lanes_hold_what_is_wanted_where_no_other_is_given(byte, expected):
    x, y = torch.ones(4), torch.zeros(4)
    with observed() as observer, memory.masked_lanes(byte):
        unmasked_rest[(1,)](x, y, 2, BLOCK=4)
    assert observer.undefined[0] == "unmasked_rest"
    assert y[:2].tolist() == [1.0, 1.0]
    assert y[2].isnan() if expected != expected else y[2] / expected > 1
    unmasked_rest[(1,)](x, y, 2, BLOCK=4)
    assert y.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_lanes_with_other_are_defined():
    with observed() as observer, memory.masked_lanes(0xFF):
        copied[(1,)](torch.ones(4), torch.zeros(4), 2, 0, BLOCK=4)
    assert observer.undefined is None


def test_every_run_keeps_back_what_leaves_the_memory():
    far = torch.full((6,), 5.0)

    def target(x):
        y = torch.zeros_like(x)
        copied[(1,)](x, y, 6, (far.data_ptr() - x.data_ptr()) // 4, BLOCK=8)
        return y

    def samples(case):
        return Sample(case.tensor("cols", name="x"))

    case = Case(op="t::op", dtype="float32", dims=Dims(cols=6))
    spec = OpSpec(
        name="t::op", target=target, reference=torch.clone, golden=torch.clone, samples=samples,
        arguments=(Argument(name="x", kind="tensor"),),
    )  # fmt: skip
    contract = Contract(name="t::op", kind="elementwise", dtypes=("float32",), dims=("cols",))
    executor = Executor(spec, contract, torch.device("cpu"), lambda *_: None)
    found = executor.execute(case, [Repeat(count=2), Observe()])
    (breach,) = found[Observe()].evidence.breaches
    assert (breach.rule, breach.tensor, breach.count) == ("outside", "x", 6)
    observed_run, other = found[Repeat(count=2)].evidence.runs
    assert dict(observed_run)["out"] == dict(other)["out"] == digest_of(torch.zeros(6))


@pytest.mark.parametrize("at", [-4, -1, 4, 7, 2**40])
def test_nothing_beside_an_argument_is_written(at):
    whole = np.zeros(12, np.float32)
    written[(1,)](torch.from_numpy(whole[4:8]), at, 7.0)
    assert not whole.any()


def test_every_lane_inside_of_an_argument_is_written():
    whole = np.zeros(12, np.float32)
    for at in range(4):
        written[(1,)](torch.from_numpy(whole[4:8]), at, 7.0)
    assert whole.tolist() == [0] * 4 + [7] * 4 + [0] * 4


def test_an_atomic_is_kept_back_too():
    whole = np.zeros(12, np.float32)
    added[(1,)](torch.from_numpy(whole[4:8]), 8, BLOCK=8)
    assert whole.tolist() == [0] * 4 + [1] * 4 + [0] * 4


def test_memory_that_only_a_table_of_addresses_leads_to_may_be_read():
    x, y = torch.full((1,), 3.0), torch.zeros(1)
    through_table[(1,)](torch.tensor([x.data_ptr()]), y, 1)
    assert y.item() == 3


def test_kernels_are_guarded_again_once_nobody_observes():
    whole = np.zeros(8, np.float32)
    with pytest.raises(ZeroDivisionError), observed():
        raise ZeroDivisionError
    written[(1,)](torch.from_numpy(whole[:4]), 5, 7.0)
    written[(1,)](torch.from_numpy(whole[:4]), 1, 7.0)
    assert whole.tolist() == [0, 7, 0, 0, 0, 0, 0, 0]
