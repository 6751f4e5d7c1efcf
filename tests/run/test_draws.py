"""What runs under many seeds are reduced to, on small eager ops whose draws are known."""

import math
from collections import deque

import pytest
import torch

from opcheck import Sample
from opcheck.core.case import Case, Dims
from opcheck.core.draws import Draws
from opcheck.core.spec import Argument, OpSpec
from opcheck.run.draws import drawn
from opcheck.run.seeds import reseeded, seeded

CPU = torch.device("cpu")
CASE = Case(op="t::op", dtype="float32", dims=Dims(rows=6, cols=20))
TENSOR = Argument(name="x", kind="tensor")


def one(case):
    return Sample(case.tensor("rows", "cols", name="x"))


def drop(x, p=0.5, scale=2.0):
    return torch.where(torch.rand(x.shape) >= p, x * scale, 0.0)


def drawing(target, reference=drop, *, samples=one, arguments=(TENSOR,), case=CASE, runs=16):
    spec = OpSpec(
        name="t::op", target=target, reference=reference, golden=reference, samples=samples, arguments=arguments
    )
    return drawn(spec, case, CPU, Draws(runs=runs, max_ulp=2.0), lambda case, label, role: None)


def tensor(found, name="out"):
    return next(item for item in found.tensors if item.tensor == name)


def script(*answers):
    """Return an op that gives the answers in turn, over and over."""
    left = deque(answers)

    def op(x):
        left.rotate(-1)
        return torch.tensor(left[-1]).expand(x.shape) * torch.ones_like(x)

    return op


def test_a_right_op():
    found = drawing(drop)
    assert [item.tensor for item in found.tensors] == ["out", "grad x"]
    assert found.repeats == 2
    for item in found.tensors:
        assert (item.unequal, item.nan, item.numel) == (0, 0, 120)
        assert item.kept.eligible == 120, "2^-32 for an element never to be kept in 32 runs"
        assert len(item.kept.target) == len(item.kept.reference) == 16
        assert item.values.steady
        assert item.values.excess == 0.0, "doubling is exact"
        assert item.values.ratio == 1.0
        assert not item.kept.fixed
    (tie,) = found.ties
    assert (tie.output, tie.gradient, tie.reference, tie.forward, tie.backward) == ("out", "grad x", 0, 0, 0)
    assert tie.dropped + tie.kept == tie.total == 120 * 16


def test_counts_by_hand():
    # Two seeds; of the first a second call: the calls of a role are answers 1, 2, 3, and the target's repeats 4 and 5.
    row = [1.0, 0.0, 3.0, 4.0]
    first, second, third = [row], [[0.0, 0.0, 3.0, 4.0]], [[1.0, 0.0, 0.0, 0.0]]
    case = Case(op="t::op", dtype="float32", dims=Dims(rows=1, cols=4))
    found = drawing(script(first, second, third, first, second), script(first, second, third), case=case, runs=2)
    item = tensor(found)
    assert item.kept.target == item.kept.reference == (3, 1)
    assert item.kept.eligible == 3
    assert item.unequal == 1, "the second repeat gives the second answer"
    # One element changes from call to call, two from seed to seed; those two share a history and count once.
    assert (item.in_a_row.target, item.in_a_row.reference) == (1, 1)
    assert (item.across.target, item.across.reference) == (2, 1)
    assert not item.in_a_row.always
    # The reference shows 1.0 twice, 3.0 and 4.0 once.
    assert (item.values.agreeing, item.values.compared) == (1, 1)


def test_numbers_that_change_everywhere_are_noticed_though_their_history_is_one():
    def noise(x):
        return x + torch.randn_like(x)

    item = tensor(drawing(lambda x: x * 1.0, noise))
    assert item.in_a_row.always
    assert item.across.always
    assert (item.in_a_row.target, item.across.target) == (0, 0)
    assert not item.values.steady
    assert tensor(drawing(noise, noise)).across.target == 120 * 15


def test_no_seed_no_equal_bits():
    other = torch.Generator().manual_seed(1)

    def ignores(x):
        return torch.where(torch.rand(x.shape, generator=other) >= 0.5, x * 2.0, 0.0)

    found = drawing(ignores)
    assert [item.unequal for item in found.tensors] == [2, 2]


def test_a_fixed_seed_and_an_offset_that_is_never_read():
    def fixed(x, seed=3):
        return torch.where(torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) >= 0.5, x * 2.0, 0.0)

    item = tensor(drawing(fixed))
    assert (item.in_a_row.target, item.across.target, item.unequal) == (0, 0, 0)
    assert min(item.in_a_row.reference, item.across.reference) >= 30
    item = tensor(drawing(lambda x: fixed(x, torch.initial_seed())))
    assert item.in_a_row.target == 0
    assert item.across.target > 120


@pytest.mark.parametrize(("scale", "excess"), [(2.0, False), (1.0, True), (2.0 * (1 + 2.0**-24), False), (2.01, True)])
def test_a_scale_is_compared_where_both_keep(scale, excess):
    values = tensor(drawing(lambda x: drop(x, scale=scale))).values
    assert values.compared == 120
    assert (values.excess > 1) is excess
    assert values.ratio == pytest.approx(scale / 2)
    if excess:
        assert values.worst.target == pytest.approx(values.worst.reference * scale / 2)


def test_a_redrawn_mask_is_counted_and_the_reference_too():
    class Redrawn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return drop(x)

        @staticmethod
        def backward(ctx, grad):
            return drop(grad)

    (tie,) = drawing(Redrawn.apply).ties
    assert tie.reference == 0
    assert tie.total == 120 * 16
    # Each is zero in one of them only with probability 1/4; 480 of 1920, give or take 6 times 19.
    assert 366 < tie.forward < 594
    assert 366 < tie.backward < 594
    assert len(tie.first) == 2
    (tie,) = drawing(drop, Redrawn.apply).ties
    assert tie.reference > 0
    assert (tie.forward, tie.backward) == (0, 0)


def test_zero_inputs_are_no_drops():
    def half(case):
        x = case.tensor("rows", "cols", name="x")
        return Sample(torch.where(torch.arange(20) < 10, x, 0.0))

    found = drawing(drop, samples=half)
    assert tensor(found).kept.eligible == 60
    assert found.ties[0].total == 60 * 16


def test_nan_of_the_targets_own():
    item = tensor(drawing(lambda x: drop(x) / torch.where(torch.arange(20) == 3, 0.0, 1.0)))
    assert item.nan == 6
    assert item.nan_at == (0, 3)


def test_dropped_rows_count_once():
    def rows(x):
        return x * (torch.rand(x.shape[0], 1) >= 0.5) * 2.0

    changes = tensor(drawing(rows, rows)).across
    assert changes.reference <= 6 * 15
    assert changes.target % 20 == 0


def seed_argument(case):
    return Sample(case.tensor("rows", "cols", name="x"), 7)


def by_seed(x, seed):
    return torch.where(torch.rand(x.shape, generator=torch.Generator().manual_seed(int(seed))) >= 0.5, x * 2.0, 0.0)


@pytest.mark.parametrize("of_tensor", [False, True])
def test_an_argument_named_seed_moves_with_torchs(of_tensor):
    def samples(case):
        x, seed = seed_argument(case).args
        return Sample(x, torch.tensor(seed) if of_tensor else seed)

    arguments = (TENSOR, Argument(name="seed", kind="tensor" if of_tensor else "value"))
    item = tensor(drawing(by_seed, by_seed, samples=samples, arguments=arguments))
    assert item.unequal == 0
    assert (item.in_a_row.target, item.in_a_row.reference) == (0, 0)
    assert min(item.across.target, item.across.reference) >= 30
    ignored = tensor(drawing(lambda x, seed: by_seed(x, 1), by_seed, samples=samples, arguments=arguments))
    assert ignored.across.target == 0


def test_a_seed_of_the_variant_moves_too():
    arguments = (TENSOR, Argument(name="seed", kind="value"))
    spec = OpSpec(name="t::op", target=by_seed, reference=by_seed, golden=by_seed, samples=one, arguments=arguments)
    case = Case(op="t::op", dtype="float32", dims=CASE.dims, variant="p=0.5,seed=-1")
    assert reseeded(spec, case, 0) == (spec, case)
    assert reseeded(spec, case, 4)[1].variant == "p=0.5,seed=3"


def test_generators_are_left_as_they_were():
    seeded(5)
    expected = torch.rand(3)
    seeded(5)
    drawing(drop)
    assert torch.equal(torch.rand(3), expected)


def test_empty_tensors_and_other_shapes_are_left_out():
    case = Case(op="t::op", dtype="float32", dims=Dims(rows=0, cols=20))
    assert drawing(drop, case=case).tensors == ()
    assert drawing(lambda x: drop(x)[:3]).tensors[0].tensor == "grad x"


def test_infinity_is_a_value():
    item = tensor(drawing(lambda x: drop(x, scale=math.inf), lambda x: drop(x, scale=math.inf)))
    assert (item.values.steady, item.values.excess) == (True, 0.0)
    item = tensor(drawing(lambda x: drop(x, scale=math.inf)))
    assert item.values.excess == math.inf
