"""The floating-point core against exact rationals, decoded bit patterns and the C library."""

import itertools
import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opcheck.core.floats import FORMATS, format_of, round_to, ulp, ulp_scalar, upcast_exact
from tests.core.exact import LAYOUTS, SMALL, all_values, finite_magnitudes, nearest_even, quantum
from tests.core.strategies import NARROWER_THAN_FLOAT64, binade_edges, doubles, finite_in, formats, near_ties

DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
INTEGERS = {8: torch.uint8, 16: torch.uint16}
thorough = settings(max_examples=200, deadline=None)


def column(values, device="cpu"):
    return torch.tensor(values, dtype=torch.float64, device=device)


def same(a, b):
    """Equal as floats, with the sign of zero; NaN equals NaN."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def disagreements(actual, expected):
    """The (index, actual, expected) of a float64 tensor that are not the same."""
    pairs = zip(actual.tolist(), expected, strict=True)
    return [(i, a, e) for i, (a, e) in enumerate(pairs) if not same(a, e)]


def drawn(strategy):
    """A format and a list of float64 numbers drawn for it."""
    return formats().flatmap(lambda f: st.tuples(st.just(f), st.lists(strategy(f), max_size=20)))


def patterns(name, device="cpu"):
    """Every bit pattern of a small format as a tensor of its dtype."""
    bits = LAYOUTS[name].bits
    return torch.arange(2**bits, dtype=torch.int32, device=device).to(INTEGERS[bits]).view(getattr(torch, name))


@pytest.mark.parametrize("name", LAYOUTS)
def test_format_matches_its_layout(name):
    fmt, layout = FORMATS[name], LAYOUTS[name]
    assert (fmt.name, fmt.bits, fmt.precision) == (name, layout.bits, layout.fraction_bits + 1)
    assert (fmt.e_min, fmt.max, fmt.has_inf) == (layout.e_min, float(layout.largest), layout.ieee)
    assert Fraction(fmt.smallest_subnormal) == layout.decode_finite(1)
    assert Fraction(fmt.unit) == quantum(Fraction(1), name) / 2
    assert fmt.wide == (name in ("float32", "float64"))
    info = ml_dtypes.finfo(getattr(ml_dtypes, name, name))
    assert (fmt.bits, fmt.precision, fmt.e_min) == (info.bits, info.nmant + 1, info.minexp)
    assert (fmt.max, fmt.smallest_subnormal) == (float(info.max), float(info.smallest_subnormal))


def test_formats_are_fixed():
    with pytest.raises(TypeError):
        FORMATS["float16"] = FORMATS["float32"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_format_of_takes_dtype_and_name(name):
    assert format_of(getattr(torch, name)) is format_of(name) is FORMATS[name]


@pytest.mark.parametrize("dtype", [torch.int32, torch.complex64, "float7"])
def test_format_of_names_the_unknown_and_the_known(dtype):
    with pytest.raises(ValueError, match=rf"{dtype} is not .* float8_e4m3fn"):
        format_of(dtype)


@thorough
@given(drawn(doubles))
def test_rounds_to_nearest_even(drawing):
    fmt, values = drawing
    assert not disagreements(round_to(column(values), fmt), [nearest_even(g, fmt.name) for g in values])


@thorough
@given(drawn(doubles))
def test_rounding_errs_by_at_most_half_an_ulp(drawing):
    fmt, values = drawing
    finite = [g for g in values if abs(g) <= fmt.max]
    for g, rounded in zip(finite, round_to(column(finite), fmt).tolist(), strict=True):
        assert abs(Fraction(rounded) - Fraction(g)) <= quantum(Fraction(g), fmt.name) / 2


@thorough
@given(drawn(doubles))
def test_rounding_is_monotone_idempotent_and_odd(drawing):
    fmt, values = drawing
    ordered = column(sorted(g for g in values if not math.isnan(g)))
    rounded = round_to(ordered, fmt)
    assert all(a <= b for a, b in itertools.pairwise(rounded.tolist()))
    assert not disagreements(round_to(rounded, fmt), rounded.tolist())
    assert not disagreements(round_to(-ordered, fmt), (-rounded).tolist())


@thorough
@given(drawn(finite_in))
def test_numbers_of_the_format_round_to_themselves(drawing):
    fmt, values = drawing
    assert not disagreements(round_to(column(values), fmt), values)


@thorough
@given(st.lists(st.floats(), min_size=1))
def test_float64_is_left_alone_bit_for_bit(values):
    g = column(values)
    rounded = round_to(g, FORMATS["float64"])
    assert torch.equal(rounded.view(torch.int64), g.view(torch.int64))
    assert rounded.data_ptr() != g.data_ptr()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SMALL)
def test_every_tie_goes_to_even_and_its_neighbours_go_to_their_own_side(name, device):
    low = np.array(finite_magnitudes(name))
    following = np.append(low[1:], np.inf)
    tie = np.append((low[1:] + low[:-1]) / 2, FORMATS[name].overflow_bound)
    even = np.where(np.arange(len(low)) % 2 == 0, low, following)
    for sign in (1.0, -1.0):
        for points, expected in ((np.nextafter(tie, 0), low), (tie, even), (np.nextafter(tie, np.inf), following)):
            rounded = round_to(column(sign * points, device), FORMATS[name])
            assert not disagreements(rounded, (sign * expected).tolist())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SMALL)
def test_every_pattern_upcasts_exactly_and_rounds_to_itself(name, device):
    upcast = upcast_exact(patterns(name, device))
    assert upcast.dtype == torch.float64
    assert not disagreements(upcast, all_values(name))
    assert not disagreements(round_to(upcast, FORMATS[name]), all_values(name))


@pytest.mark.parametrize("code", ["e", "f"])
def test_agrees_with_the_c_librarys_single_rounding(code):
    fmt = FORMATS[{"e": "float16", "f": "float32"}[code]]
    bits = np.random.default_rng(0).integers(0, 2**52, 2000) | (np.arange(2000) % 60 + 1023 - 45) << 52
    values = bits.view(np.float64).tolist()
    inside = [g for g in values if g < fmt.overflow_bound]
    assert len(inside) > 1900
    expected = [struct.unpack(code, struct.pack(code, g))[0] for g in inside]
    assert not disagreements(round_to(column(inside), fmt), expected)


@pytest.mark.parametrize("fmt", NARROWER_THAN_FLOAT64, ids=lambda fmt: fmt.name)
def test_overflow_bound_parts_max_from_infinity(fmt):
    bound = fmt.overflow_bound
    at_the_bound = 448.0 if fmt.name == "float8_e4m3fn" else math.inf
    points = [math.nextafter(bound, 0), bound, math.nextafter(bound, math.inf), 1.7976931348623157e308, math.inf]
    assert round_to(column(points), fmt).tolist() == [fmt.max, at_the_bound, math.inf, math.inf, math.inf]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fmt", NARROWER_THAN_FLOAT64, ids=lambda fmt: fmt.name)
def test_every_binade_above_max_overflows(fmt, device):
    powers = [sign * 2.0**e for e in range(fmt.e_max + 1, 1024) for sign in (1, -1)]
    assert round_to(column(powers, device), fmt).tolist() == [math.copysign(math.inf, g) for g in powers]


def test_overflow_bounds_by_hand():
    assert FORMATS["float16"].overflow_bound == 65520
    assert FORMATS["float8_e4m3fn"].overflow_bound == 464
    assert FORMATS["float8_e5m2"].overflow_bound == 61440
    assert FORMATS["float64"].overflow_bound == math.inf


@pytest.mark.parametrize(("name", "tie"), [("bfloat16", 1 + 2**-8), ("float16", 1 + 2**-11)])
def test_rounds_once_where_torch_rounds_twice(name, tie):
    """Just above a tie, float32 drops the excess and the tie then goes down to 1: the answer is the number above."""
    g, fmt = tie + 2**-40, FORMATS[name]
    assert nearest_even(g, name) == 1 + 2 * (tie - 1)
    assert round_to(column([g]), fmt).item() == 1 + 2 * (tie - 1)
    twice = round_to(round_to(column([g]), FORMATS["float32"]), fmt)
    assert twice.item() == 1.0
    assert column([g]).to(getattr(torch, name)).item() == twice.item(), "torch now rounds once: say so in the docs"


WRONG_ROUNDINGS = {
    "truncates": lambda g, step: math.trunc(g / step) * step,
    "takes ties away from zero": lambda g, step: (
        math.copysign(1, g) * math.floor(abs(g) / step + Fraction(1, 2)) * step
    ),
    "rounds up": lambda g, step: math.ceil(g / step) * step,
}


@pytest.mark.parametrize("name", WRONG_ROUNDINGS)
@pytest.mark.parametrize("fmt", NARROWER_THAN_FLOAT64, ids=lambda fmt: fmt.name)
def test_a_wrong_rounding_is_told_apart(name, fmt):
    """The points of the tests above are such that each usual mistake gives another answer on one of them."""
    ties = [k * fmt.smallest_subnormal / 2 for k in range(-9, 10, 2)]
    wrong = [float(WRONG_ROUNDINGS[name](Fraction(g), Fraction(fmt.smallest_subnormal))) for g in ties]
    assert disagreements(round_to(column(ties), fmt), wrong)


@thorough
@given(drawn(doubles))
def test_ulp_matches_the_rational_formula(drawing):
    fmt, values = drawing
    expected = [float(quantum(Fraction(g), fmt.name)) if math.isfinite(g) else math.nan for g in values]
    assert not disagreements(ulp(column(values), fmt), expected)
    assert not disagreements(column([ulp_scalar(g, fmt) for g in values]), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SMALL)
def test_ulp_is_the_distance_to_the_next_number(name, device):
    values = finite_magnitudes(name)
    gaps = [b - a for a, b in itertools.pairwise(values)]
    assert ulp(column(values[:-1], device), FORMATS[name]).tolist() == gaps
    assert ulp(column(values[:-1], device).neg(), FORMATS[name]).tolist() == gaps


@thorough
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float64_ulp_is_the_c_librarys(g):
    assert ulp(column(g), FORMATS["float64"]).item() == ulp_scalar(g, FORMATS["float64"]) == math.ulp(g)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_ulp_at_zero_at_the_edges_and_nowhere(fmt):
    smallest_normal = 2.0**fmt.e_min
    points = [
        0.0,
        -0.0,
        fmt.smallest_subnormal,
        math.nextafter(smallest_normal, 0),
        smallest_normal,
        2 * smallest_normal,
    ]
    eta = fmt.smallest_subnormal
    assert ulp(column(points), fmt).tolist() == [eta, eta, eta, eta, eta, 2 * eta]
    assert ulp(column([math.inf, -math.inf, math.nan]), fmt).isnan().all()
    assert math.isnan(ulp_scalar(math.inf, fmt))
    assert math.isnan(ulp_scalar(math.nan, fmt))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", [round_to, ulp])
def test_any_shape_layout_and_history(function, device):
    fmt = FORMATS["bfloat16"]
    base = torch.linspace(-3, 3, 24, dtype=torch.float64, device=device).reshape(4, 6)
    before = base.clone()
    flat = function(base, fmt).flatten().tolist()
    assert function(base.t(), fmt).t().flatten().tolist() == flat
    assert function(base[1::2, ::3], fmt).flatten().tolist() == [flat[i] for i in (6, 9, 18, 21)]
    assert function(base[:1].expand(3, 6), fmt).flatten().tolist() == flat[:6] * 3
    assert function(base[0, 0], fmt).shape == ()
    assert function(base[0, 0], fmt).item() == flat[0]
    assert function(base[:0], fmt).shape == (0, 6)
    assert not function(base.clone().requires_grad_(), fmt).requires_grad
    conjugate = torch.complex(base, -base).conj().imag
    assert conjugate.is_neg()
    assert function(conjugate, fmt).flatten().tolist() == flat
    assert torch.equal(base, before)


@pytest.mark.parametrize("function", [round_to, ulp])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_only_float64_is_taken(function, dtype):
    with pytest.raises(TypeError, match=f"float64 tensor, not {dtype}"):
        function(torch.zeros(2, dtype=dtype), FORMATS["float16"])


@thorough
@given(st.lists(finite_in(FORMATS["float32"])))
def test_float32_upcasts_exactly(values):
    narrow = torch.from_numpy(np.array([struct.pack("f", g) for g in values], dtype="S4").view(np.float32).copy())
    assert not disagreements(upcast_exact(narrow), values)


@thorough
@given(st.integers(-(2**53), 2**53))
def test_integers_up_to_2_53_upcast_exactly(value):
    assert int(upcast_exact(torch.tensor(value)).item()) == value


def test_other_dtypes_upcast():
    assert upcast_exact(torch.tensor([True, False])).tolist() == [1.0, 0.0]
    assert upcast_exact(torch.tensor([-128, 127], dtype=torch.int8)).tolist() == [-128.0, 127.0]
    assert upcast_exact(torch.empty(0, 3, dtype=torch.float16)).shape == (0, 3)
    assert upcast_exact(torch.tensor(2**53 + 1)).item() == 2.0**53
    with pytest.raises(TypeError, match="complex64"):
        upcast_exact(torch.zeros(1, dtype=torch.complex64))


@thorough
@given(st.data(), st.sampled_from(NARROWER_THAN_FLOAT64))
def test_strategies_draw_what_they_promise(data, fmt):
    value = data.draw(finite_in(fmt))
    assert nearest_even(value, fmt.name) == value
    assume(value != 0)
    tie = abs(Fraction(data.draw(near_ties(fmt))))
    step = quantum(tie, fmt.name)
    assert abs(tie % step - step / 2) <= 4 * quantum(tie, "float64")
    edge = abs(data.draw(binade_edges(fmt)))
    assert math.isfinite(edge)
    assert edge > 0
