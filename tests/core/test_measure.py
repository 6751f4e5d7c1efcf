"""`measure` against the written law in plain Python, on numbers at which it could go wrong."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opcheck.core.floats import FORMATS
from opcheck.core.measure import WORST_KEPT, digest_of, measure, measure_oracle
from opcheck.core.policy import Existing
from tests.core.brute import alike_value, distance, element, quotient
from tests.core.exact import LAYOUTS, nearest_even
from tests.core.strategies import doubles, finite_in, formats

thorough = settings(max_examples=150, deadline=None)
OVERFLOWS = ("ieee", "saturate", "nan")


def tensor(values, name, shape=None):
    """A tensor of numbers of the format."""
    made = torch.tensor(values, dtype=torch.float64).to(getattr(torch, name))
    assert all(alike_value(a, b) for a, b in zip(made.double().tolist(), values, strict=True))
    return made.reshape(shape if shape is not None else len(values))


def numbers(fmt):
    """Draw numbers of the format, NaN and its infinities included."""
    special = (math.nan, math.inf, -math.inf) if fmt.has_inf else (math.nan,)
    return st.one_of(finite_in(fmt), st.sampled_from(special))


@st.composite
def triples(draw, fmt):
    """Draw golden, and for target and reference golden rounded, its neighbour, or anything."""
    g = draw(doubles(fmt))
    rounded = nearest_even(g, fmt.name)
    near = rounded if fmt.has_inf or not math.isinf(rounded) else math.copysign(fmt.max, g)
    values = st.one_of(st.just(near), numbers(fmt))
    return draw(values), draw(values), g


@st.composite
def cases(draw):
    fmt = draw(formats())
    rows = draw(st.lists(triples(fmt), min_size=1, max_size=12))
    return fmt.name, rows, draw(st.sampled_from(OVERFLOWS)), draw(st.booleans()), draw(st.booleans())


@thorough
@given(cases())
def test_follows_the_written_law_element_by_element(case):
    name, rows, overflow, gradient, inputs_finite = case
    t, f, g = zip(*rows, strict=True)
    got = measure(
        "grad x", tensor(t, name), tensor(f, name), torch.tensor(g, dtype=torch.float64),
        gradient=gradient, inputs_finite=inputs_finite, overflow=overflow,
    )  # fmt: skip
    found = [element(*row, name, overflow=overflow, void_allowed=gradient and inputs_finite) for row in rows]
    judged = [(item, row) for item, row in zip(found, rows, strict=True) if item.judged]
    assert (got.tensor, got.dtype, got.shape, got.exact) == ("grad x", name, (len(rows),), False)
    assert got.judged == len(judged)
    assert got.scale == max((abs(row[2]) for _, row in judged), default=0.0)
    assert got.target_error == max((item.target_error for item in found), default=0.0)
    assert got.reference_error == max((item.reference_error for item in found), default=0.0)
    assert got.rounding_floor == max((item.floor for item in found), default=0.0)
    assert got.max_ulp == max((item.ulps for item in found), default=0.0)
    ulps = [item.ulps for item in found]
    place = (ulps.index(max(ulps)),) if max(ulps) else None
    assert (got.max_ulp_at and got.max_ulp_at.index) == place
    assert got.reference_max_ulp == max((item.reference_ulps for item in found), default=0.0)
    assert got.void == sum(item.void for item in found)
    assert got.alike == sum(item.alike for item in found)
    assert got.held == sum(item.held is not None for item in found)
    assert got.held_error == max((item.held for item in found if item.held is not None), default=0.0)
    assert {bad.kind: bad.count for bad in got.misplaced} == Counter(item.kind for item in found if item.kind)
    for bad in got.misplaced:
        first = next(at for at, item in enumerate(found) if item.kind == bad.kind)
        assert bad.first.index == (first,)
        assert all(map(alike_value, (bad.first.target, bad.first.reference, bad.first.golden), rows[first]))
    gap = max(item.gap for item in found)
    assert got.overflow_gap == gap
    assert (got.overflow_at is None) == (gap == 0)
    if gap:
        assert found[got.overflow_at.index[0]].gap == gap
    errors = sorted((item.target_error for item in found if item.target_error), reverse=True)
    assert [distance(item.target, item.golden) for item in got.worst] == errors
    assert (got.slices, got.bias) == ((), None)


@thorough
@given(cases())
def test_the_oracles_error_is_what_measure_gives(case):
    name, rows, *_ = case
    _, f, g = zip(*rows, strict=True)
    got = measure_oracle("out", tensor(f, name), torch.tensor(g, dtype=torch.float64))
    found = [(element(0.0, b, c, name), c) for b, c in zip(f, g, strict=True)]
    judged = [(item, c) for item, c in found if item.judged]
    assert (got.tensor, got.judged) == ("out", len(judged))
    assert got.reference_error == max((item.reference_error for item, _ in judged), default=0.0)
    assert got.rounding_floor == max((item.floor for item, _ in judged), default=0.0)
    assert got.scale == max((abs(c) for _, c in judged), default=0.0)


def test_an_oracle_of_integers_or_of_another_shape_has_no_error():
    assert measure_oracle("out", torch.tensor([1]), torch.tensor([1])) is None
    assert measure_oracle("out", torch.zeros(2), torch.zeros(3, dtype=torch.float64)) is None


@pytest.mark.parametrize("name", LAYOUTS)
def test_nothing_is_judged_of_an_empty_tensor(name):
    nothing = torch.zeros(3, 0, 2, dtype=getattr(torch, name))
    got = measure("out", nothing, nothing, nothing.double())
    assert (got.shape, got.numel, got.judged, got.misplaced, got.worst, got.slices) == ((3, 0, 2), 0, 0, (), (), ())
    assert measure_oracle("out", nothing, nothing.double()).judged == 0


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_scalar_is_one_element(name):
    got = measure("out", tensor([1.5], name, ()), tensor([1.0], name, ()), torch.tensor(1.25, dtype=torch.float64))
    assert (got.shape, got.judged, got.target_error, got.reference_error) == ((), 1, 0.25, 0.25)
    assert got.worst[0].index == ()


@pytest.mark.parametrize("name", LAYOUTS)
def test_all_nan_is_right_where_golden_is_all_nan_and_nowhere_else(name):
    nan, one = tensor([math.nan] * 5, name), tensor([1.0] * 5, name)
    right = measure("out", nan, nan, nan.double())
    assert (right.judged, right.misplaced, right.void, right.alike) == (0, (), 0, 0)
    assert [(bad.kind, bad.count) for bad in measure("out", one, nan, nan.double()).misplaced] == [("NaN missing", 5)]
    lost = measure("out", nan, one, one.double())
    assert [(bad.kind, bad.count) for bad in lost.misplaced] == [("NaN where golden is finite", 5)]
    assert measure("out", nan, nan, one.double()).alike == 5


@pytest.mark.parametrize(("gradient", "finite"), list(product((False, True), repeat=2)))
def test_a_nan_of_golden_is_void_only_in_a_gradient_of_finite_inputs(gradient, finite):
    nan, one = tensor([math.nan], "float32"), tensor([1.0], "float32")
    got = measure("grad x", one, nan, nan.double(), gradient=gradient, inputs_finite=finite)
    assert (got.void, len(got.misplaced)) == ((1, 0) if gradient and finite else (0, 1))


@pytest.mark.parametrize(("target", "gap", "kinds"), [
    (math.inf, 0.0, []),
    (65504.0, 2.0, []),
    (65472.0, 32.0, []),
    (-math.inf, 0.0, ["Inf of the wrong sign"]),
    (-65504.0, 0.0, ["Inf missing"]),
    (math.nan, 0.0, ["Inf missing"]),
])  # fmt: skip
def test_overflow_of_float16_by_hand(target, gap, kinds):
    """Golden 65522 is 2 beyond 65520, halfway from 65504 to 65536."""
    got = measure("out", tensor([target], "float16"), tensor([math.inf], "float16"), torch.tensor([65522.0]).double())
    assert (got.overflow_gap, [bad.kind for bad in got.misplaced], got.judged) == (gap, kinds, 0)


def test_an_overflow_that_comes_too_early_is_measured_to_the_bound():
    target, reference = tensor([math.inf, 1.0], "float16"), tensor([65504.0, 1.0], "float16")
    got = measure("out", target, reference, torch.tensor([65519.0, 1.0]).double())
    assert (got.overflow_gap, got.overflow_at.index, got.misplaced) == (1.0, (0,), ())


@pytest.mark.parametrize(("overflow", "right", "wrong"), [
    ("saturate", 448.0, math.nan), ("nan", math.nan, None), ("ieee", math.nan, None),
])  # fmt: skip
def test_float8_e4m3fn_has_no_infinity_to_overflow_to(overflow, right, wrong):
    golden = torch.tensor([1e6, math.inf]).double()
    got = measure("out", *[tensor([right] * 2, "float8_e4m3fn")] * 2, golden, overflow=overflow)
    assert (got.misplaced, got.overflow_gap, got.judged) == ((), 0.0, 0)
    if wrong is not None:
        got = measure("out", *[tensor([wrong] * 2, "float8_e4m3fn")] * 2, golden, overflow=overflow)
        assert [(bad.kind, bad.count) for bad in got.misplaced] == [("Inf missing", 2)]


def test_a_saturating_kernel_is_far_from_the_bound_where_nan_was_promised():
    got = measure("out", *[tensor([448.0], "float8_e4m3fn")] * 2, torch.tensor([1e6]).double(), overflow="nan")
    assert got.overflow_gap == 1e6 - 464


def test_the_sign_of_zero_is_unjudged_and_subnormals_are_not_flushed():
    tiny = FORMATS["float16"].smallest_subnormal
    got = measure(
        "out", tensor([-0.0, 0.0], "float16"), tensor([0.0, tiny], "float16"), torch.tensor([0.0, tiny]).double()
    )
    assert (got.target_error, got.max_ulp, got.reference_error, got.misplaced) == (tiny, 1.0, 0.0, ())


@thorough
@given(st.sampled_from([torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]), st.data())
def test_integers_are_compared_as_integers(dtype, data):
    low, high = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    values = st.lists(st.integers(low, high), min_size=6, max_size=6)
    t, f, g = (torch.tensor(data.draw(values)).to(dtype) for _ in range(3))
    got = measure("out", t.view(2, 3), f.view(2, 3), g.view(2, 3))
    wrong = [at for at in range(6) if t.tolist()[at] != g.tolist()[at]]
    assert (got.exact, got.judged, got.unequal) == (True, 6, len(wrong))
    assert [item.index for item in got.worst] == [divmod(at, 3) for at in wrong]
    for item, at in zip(got.worst, wrong, strict=True):
        assert (item.target, item.reference, item.golden) == (float(t[at]), float(f[at]), float(g[at]))


def test_integers_beyond_2_53_differ_though_float64_cannot_tell_them_apart():
    g = torch.tensor([2**53 + 1])
    assert float(g[0]) == float(g[0] - 1)
    assert measure("out", g - 1, g, g).unequal == 1
    assert measure("out", g, g, g).unequal == 0


@pytest.mark.parametrize("name", ["float32", "float8_e5m2"])
@pytest.mark.parametrize("rank", [1, 8, 64])
def test_places_are_given_in_the_tensors_own_rank(name, rank):
    shape = [1] * rank
    shape[rank // 2] = 6
    target, zero = tensor([0.0, 0, 0, 0, 2, 1], name, shape), tensor([0.0] * 6, name, shape)
    got = measure("out", target, zero, zero.double())
    assert [item.index[rank // 2] for item in got.worst] == [4, 5]
    assert all(len(item.index) == rank and sum(item.index) == item.index[rank // 2] for item in got.worst)


def test_a_strided_target_is_read_in_logical_order():
    target = torch.arange(6.0).view(2, 3)
    got = measure(
        "out", target.t(), target.t().contiguous(), target.t().double() + torch.eye(3, 2, dtype=torch.float64)
    )
    assert (got.target_error, got.reference_error) == (1.0, 1.0)
    assert [item.index for item in got.worst] == [(0, 0), (1, 1)]
    assert got.digest == digest_of(target.t().contiguous())


def test_at_most_so_many_of_the_worst_are_kept():
    target = torch.arange(200.0)
    got = measure("out", target, torch.zeros(200), torch.zeros(200, dtype=torch.float64))
    assert [item.target for item in got.worst] == [float(199 - at) for at in range(WORST_KEPT)]


@thorough
@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6, width=32)] * 2), min_size=1, max_size=8),
       st.floats(0, 1), st.floats(0, 1))  # fmt: skip
def test_a_declared_tolerance_is_measured_per_element(rows, atol, rtol):
    t, g = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True))
    got = measure("out", t.float(), g.float(), g, existing=Existing(atol=atol, rtol=rtol)).existing_excess

    def excess(a, b):
        error, allowed = distance(a, b), Fraction(atol) + Fraction(rtol) * abs(Fraction(b))
        return 0.0 if not error else quotient(error, allowed) if allowed else math.inf

    assert got == pytest.approx(max(excess(a, b) for a, b in rows), rel=1e-12, abs=0)


def test_the_digest_tells_every_bit_and_nothing_else():
    zero, negative = torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0])
    quiet, payload = (torch.tensor([bits], dtype=torch.int32).view(torch.float32) for bits in (0x7FC00000, 0x7FC00001))
    distinct = [zero, negative, zero.flip(0), quiet, payload, torch.tensor([True, False]), torch.zeros(0)]
    assert len({digest_of(item) for item in distinct}) == len(distinct)
    assert digest_of(zero) == digest_of(zero.clone().view(1, 2)) == digest_of(torch.stack([zero, negative], 1)[:, 0])
    assert digest_of(torch.tensor(1.0, dtype=torch.float8_e5m2)) == digest_of(torch.tensor([1.0]).to(torch.float8_e5m2))
