"""An op in a long run, on small ops that keep something between their calls."""

import dataclasses
from collections import OrderedDict

import pytest
import torch

from opcheck import Sample
from opcheck.core.case import Dims
from opcheck.core.policy import Contract
from opcheck.core.stress import STRESS, Endure, Endured, Growth, Reshape
from opcheck.run.comparison import Comparison, arguments
from opcheck.run.stress import stressed
from opcheck.run.stress.large import batch_of, large

from .surrounded import CASE, CONTRACT, CPU, failures, plain, silent

LIMITS = {"steps": 6, "shapes": 16}
ENDURE, RESHAPE = Endure(steps=6, calls=4), Reshape(shapes=16)


def complaints(target, trial, reference=None):
    spec = plain(target, reference or square)
    return failures(STRESS, trial, stressed(spec, CONTRACT, CASE, CPU, trial, silent), **LIMITS)


def square(x):
    return x * x


@pytest.mark.parametrize("trial", [ENDURE, RESHAPE], ids=str)
def test_an_op_without_a_state_endures(trial):
    found = stressed(plain(square, square), CONTRACT, CASE, CPU, trial, silent)
    assert failures(STRESS, trial, found, **LIMITS) == []
    assert all(item.sustained <= 0 for item in found.growth)
    assert found.behaviour.equal >= 32


@pytest.mark.parametrize("keep", [
    lambda kept, x, y: kept.append(x), lambda kept, x, y: kept.append(y.detach()),
    lambda kept, x, y: kept.append([len(kept)]),
], ids=["input", "output", "list"])  # fmt: skip
def test_what_is_kept_of_every_call_is_found(keep):
    kept = []

    def target(x):
        y = square(x)
        keep(kept, x, y)
        return y

    ((tensor, detail),) = complaints(target, ENDURE)
    assert tensor == "the op"
    assert "more after each call" in detail


def test_memory_that_python_does_not_see_is_found():
    import ctypes

    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p

    def target(x):
        malloc(ctypes.c_size_t(4096))
        return square(x)

    ((_, detail),) = complaints(target, ENDURE)
    assert "bytes of host memory more after each call" in detail


def test_a_cycle_is_no_leak_and_a_bounded_cache_is_none():
    kept = OrderedDict()

    def target(x):
        y = square(x)
        cycle = [y]
        cycle.append(cycle)
        kept[x.data_ptr()] = y.detach()
        if len(kept) > 4:
            kept.popitem(last=False)
        return y

    assert complaints(target, ENDURE) == []


def test_a_cache_keyed_by_the_address_grows():
    kept = {}

    def target(x):
        kept[x.data_ptr()] = x.detach().clone()
        return square(x)

    ((_, detail),) = complaints(target, ENDURE)
    assert "live tensors more after each call" in detail


@pytest.mark.parametrize("key", [lambda x: tuple(x.shape), lambda x: x.data_ptr()], ids=["shape", "address"])
def test_a_result_kept_too_long_is_stale(key):
    kept = OrderedDict()

    def target(x):
        found = kept.get(key(x))
        if found is None:
            found = kept[key(x)] = square(x.detach())
        if len(kept) > 2:
            kept.popitem(last=False)
        return x * x - (x * x).detach() + found

    found = complaints(target, ENDURE)
    assert {tensor for tensor, _ in found} == {"out"}
    assert "other values" in found[0][1]


def test_a_counter_that_changes_the_answer_is_found():
    calls = []

    def target(x):
        calls.append(None)
        return square(x) * (1.0 if len(calls) < 30 else 1.5)

    found = complaints(target, ENDURE)
    assert {tensor for tensor, _ in found} == {"out", "grad x"}
    assert "in call 3" in found[0][1]


def test_a_backward_that_reads_what_the_last_forward_left_is_found():
    left = {}

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            left["x"] = x.detach()
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2.0 * left["x"] * grad

    found = complaints(Square.apply, ENDURE)
    assert [tensor for tensor, _ in found] == ["grad x"]
    assert "another forward before the backward" in found[0][1]


def test_a_cache_keyed_too_coarsely_is_wrong_after_other_shapes():
    rows = {}

    def target(x):
        first = rows.setdefault(x.shape[-1], x.shape[0])
        return torch.cat((square(x[:first]), torch.zeros_like(x[first:])))

    found = complaints(target, RESHAPE)
    assert {tensor for tensor, _ in found} == {"out", "grad x"}


def test_an_answer_that_depends_on_the_order_of_the_shapes_is_found():
    seen = []

    def target(x):
        seen.append(x.shape[0])
        return square(x) * (1.0 + 1e-7 * (max(seen) > x.shape[0]))

    found = complaints(target, RESHAPE)
    assert tuple(dict.fromkeys(tensor for tensor, _ in found)) == ("out", "grad x")
    assert "first run on the same values" in found[0][1]


@pytest.mark.parametrize(("most", "grows"), [(1000, True), (8, False)])
def test_a_tensor_for_every_shape_is_a_limitation(most, grows):
    kept = OrderedDict()

    def target(x):
        kept[tuple(x.shape)] = x.detach().clone()
        if len(kept) > most:
            kept.popitem(last=False)
        return square(x)

    found = complaints(target, RESHAPE)
    assert [detail.partition(": ")[2] for _, detail in found] == (
        ["1 live tensors more after each shape, in every step of 16"] if grows else []
    )


def test_growth_must_be_in_every_step():
    assert Growth(what="live tensors", steps=(4, 4, 4), count=4).sustained == 1.0
    assert Growth(what="live tensors", steps=(40, 0, 40), count=4).sustained == 0.0
    assert Growth(what="live tensors", steps=(), count=4).sustained == 0.0


def comparison(target, contract=CONTRACT):
    return Comparison(plain(target, square), contract, CASE, CPU, "large", silent)


def test_each_part_of_a_large_batch_is_as_the_case_is():
    found = large(comparison(square), 0.5, free=1 << 20)
    assert (found.problems, found.different) == ((), ())
    assert found.equal == 2 * 2


def test_a_large_batch_whose_end_is_wrong_is_found():
    def target(x):
        return torch.cat((square(x[:500]), torch.zeros_like(x[500:])))

    found = Endured(behaviour=large(comparison(target), 0.5, free=1 << 20))
    tensors = [(tensor, "last part" in detail) for tensor, detail in failures(STRESS, RESHAPE, found, **LIMITS)]
    assert tensors == [("out", True), ("grad x", True)]


def test_a_batch_is_a_dimension_that_comes_first_everywhere_and_is_not_reduced():
    call = arguments(plain(square, square), CASE, CPU)
    assert batch_of(CONTRACT, call) == "rows"
    reduced = Contract(name="t::op", kind="reduction", dtypes=("float32",), dims=("rows", "cols"), reduces=("rows",))
    assert batch_of(reduced, call) == ""


def test_the_rows_of_a_table_that_indices_count_are_no_batch():
    def add(base, index, src):
        return base.index_add(0, index, src)

    def samples(case):
        index = case.integers(0, case.dims["rows"], "count", name="index")
        return Sample(case.tensor("rows", "cols", name="base"), index, case.tensor("count", "cols", name="src"))

    spec = dataclasses.replace(plain(add, add), samples=samples, arguments=())
    contract = dataclasses.replace(CONTRACT, dims=("rows", "count", "cols"), reduces=("count",))
    case = dataclasses.replace(CASE, dims=Dims({"rows": 3, "count": 5, "cols": 7}))
    assert batch_of(contract, arguments(spec, case, CPU)) == ""


@pytest.mark.parametrize(("dims", "batch"), [({"rows": 3, "cols": 7}, "rows"), ({"...0": 2, "rows": 3, "cols": 7}, "")])
def test_rows_come_first_where_there_are_no_leading_dimensions(dims, batch):
    spec = dataclasses.replace(
        plain(square, square), samples=lambda case: Sample(case.tensor("...", "rows", "cols", name="x"))
    )
    contract = dataclasses.replace(CONTRACT, dims=("...", "rows", "cols"), reduces=("cols",))
    call = arguments(spec, dataclasses.replace(CASE, dims=Dims(dims)), CPU)
    assert batch_of(contract, call) == batch


def test_a_batch_of_a_random_op_is_not_compared():
    found = large(comparison(square, dataclasses.replace(CONTRACT, random=True)), 0.5, free=1 << 20)
    assert (found.problems, found.different, len(found.uncovered)) == ((), (), 1)


def test_a_batch_whose_samples_know_their_place_is_not_compared():
    def placed(x):
        return x * torch.arange(1, x.shape[0] + 1, dtype=x.dtype)[:, None]

    found = large(Comparison(plain(placed, placed), CONTRACT, CASE, CPU, "large", silent), 0.5, free=1 << 20)
    assert (found.problems, found.different, len(found.uncovered)) == ((), (), 1)
