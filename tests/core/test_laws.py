"""Threshold, siblings, fibres, bias and pattern against exact rationals and plain loops over the written law."""

import math
from fractions import Fraction

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opcheck.core.bias import bias_of
from opcheck.core.fibres import slices_of
from opcheck.core.floats import FORMATS, round_to, ulp
from opcheck.core.laws import siblings_needed, threshold
from opcheck.core.measured import AxisSlices, Measured
from opcheck.core.outcome import OracleError
from tests.core.brute import quotient
from tests.core.exact import LAYOUTS, nearest_even, quantum

thorough = settings(max_examples=100, deadline=None)
WIDE = ("float32", "float64")
sizes = st.floats(0.0, 1e30)
KEYS = ("reference_error", "rounding_floor", "scale")
parts = st.fixed_dictionaries(dict.fromkeys(KEYS, sizes))
pooled = st.fixed_dictionaries(dict.fromkeys((*KEYS, "random_scale"), sizes))


def measured(name, judged=1000, **errors):
    return Measured(tensor="out", dtype=name, shape=(judged,), judged=judged, **errors)


@thorough
@given(st.sampled_from(tuple(LAYOUTS)), parts, st.none() | pooled, st.floats(1, 8), sizes, st.floats(0, 1))
def test_the_threshold_is_the_written_sum(name, case, other, fudge, atol, trigger):
    siblings = None if other is None else OracleError(tensor="grad x", judged=64, **other)
    got = threshold(
        measured(name, **case), siblings, FORMATS[name], fudge_factor=fudge, project_atol=atol, trigger=trigger
    )
    pairs = [case] if other is None else [case, other]
    error, floor, scale = (max(Fraction(item[key]) for item in pairs) for key in KEYS)
    least = 2 * quantum(scale, name) if name in WIDE else Fraction(0)
    random_scale = Fraction((other or {}).get("random_scale", 0.0))
    summed = 16 * random_scale / (2**53 if name == "float64" else 2**24)
    absolute = max(Fraction(atol), floor, least, summed)
    assert (Fraction(got.reference_error), Fraction(got.rounding_floor), Fraction(got.scale)) == (error, floor, scale)
    assert Fraction(got.absolute_floor) == absolute
    assert got.value == pytest.approx(float(Fraction(fudge) * error + absolute), rel=1e-15)
    verbatim = 2 * Fraction(case["reference_error"]) + max(Fraction(atol), Fraction(case["rounding_floor"]))
    assert got.protocol == pytest.approx(float(verbatim), rel=1e-15)
    unit = max(scale, absolute, random_scale)
    if not error:
        assert got.reference_relative_error == 0.0
    elif not unit:
        assert got.reference_relative_error == math.inf
    else:
        assert got.reference_relative_error == pytest.approx(quotient(float(error), unit), rel=1e-15)
    assert got.gate_valid == (got.reference_relative_error <= trigger)


def test_the_threshold_by_hand():
    narrow = measured("float16", reference_error=2.0**-12, rounding_floor=2.0**-15, scale=1.0)
    got = threshold(narrow, None, FORMATS["float16"], fudge_factor=2.0, project_atol=0.0, trigger=0.1)
    assert (got.value, got.protocol, got.parts) == (2.0**-11 + 2.0**-15,) * 2 + ("2 x 2.4e-04 + 3.1e-05",)
    wide = measured("float32", reference_error=0.0, rounding_floor=0.0, scale=3.0)
    got = threshold(wide, None, FORMATS["float32"], fudge_factor=4.0, project_atol=0.0, trigger=0.1)
    assert (got.value, got.absolute_floor, got.protocol) == (2.0**-21, 2.0**-21, 0.0)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_what_a_constant_upstream_gradient_cancels_is_held_to_16_fp32_roundings_of_its_terms(name):
    # Softmax of equal logits: y (dy - sum y dy) is 0 for a dy of ones, and golden and reference say so exactly.
    nothing = measured(name, reference_error=0.0, rounding_floor=0.0, scale=0.0)
    siblings = OracleError(
        tensor="grad x", judged=64, reference_error=0.0, rounding_floor=0.0, scale=0.0, random_scale=0.25
    )
    got = threshold(nothing, siblings, FORMATS[name], fudge_factor=2.0, project_atol=0.0, trigger=0.1)
    assert (got.value, got.gate_valid) == (2.0**-22, True)  # of a wrong row sum, 0.25 or so would be left


def test_the_trigger_is_part_of_what_is_valid():
    def valid(error):
        item = measured("bfloat16", reference_error=error, scale=1.0)
        return threshold(item, None, FORMATS["bfloat16"], fudge_factor=2.0, project_atol=0.0, trigger=0.25).gate_valid

    assert valid(0.25)
    assert not valid(math.nextafter(0.25, 1))


@pytest.mark.parametrize("name", LAYOUTS)
def test_siblings_give_64_elements_and_never_more_than_64_seeds(name):
    for judged in (*range(200), 10**6):
        wanted = siblings_needed(measured(name, judged))
        enough = name not in WIDE and judged >= 64
        if judged == 0 or enough:
            assert wanted == 0
        else:
            assert 8 <= wanted <= 64
            assert wanted * judged >= 64
            assert wanted == 8 or (wanted - 1) * judged < 64


def test_a_narrow_target_beyond_one_draw_of_the_reference_asks_the_siblings():
    parts = {"judged": 387, "reference_error": 2.0**-12, "rounding_floor": 2.0**-15}
    allowed = 2 * 2.0**-12 + 2.0**-15
    assert siblings_needed(measured("float16", target_error=allowed, **parts)) == 0
    assert siblings_needed(measured("float16", target_error=math.nextafter(allowed, 1), **parts)) == 8


@pytest.mark.parametrize(("target", "count"), [(1e-3, 0), (1.1e-3, 8)])
def test_a_narrow_slice_beyond_one_draw_of_the_reference_asks_the_siblings(target, count):
    axis = AxisSlices(
        axis=1, length=129, judged_share=1.0, reference_quotient=1e-3, target_quotient=target, worst=(2, -1),
        worst_error=target, worst_scale=1.0, worst_floor=2.0**-9,
    )  # fmt: skip
    assert siblings_needed(measured("bfloat16", judged=387, slices=(axis,))) == count


def fibres(target, reference, golden, shape, axis, name):
    """The law of slices in plain Python: per fibre s, f, q and the target's excess, None where not judged."""
    fmt = LAYOUTS[name]
    u, eta = Fraction(2) ** -(fmt.fraction_bits + 1), quantum(Fraction(0), name)
    scale = max(map(Fraction, golden))
    strides = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    found = {}
    for flat in range(math.prod(shape)):
        index = [flat // stride % size for stride, size in zip(strides, shape, strict=True)]
        index[axis] = -1
        found.setdefault(tuple(index), []).append(flat)
    for index, members in found.items():
        s = max(*(Fraction(golden[at]) for at in members), scale / 4096)
        f = u * s + eta / 2
        error_t, error_f = (max(Fraction(values[at]) for at in members) for values in (target, reference))
        q = max(Fraction(0), error_f - f) / s
        judged = q <= Fraction(0.1) and f <= Fraction(0.1) * s
        found[index] = (s, f, error_t, q, max(Fraction(0), error_t - 2 * f) / s) if judged else None
    return found


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(tuple(LAYOUTS)),
    st.sampled_from([(3, 32), (32, 3), (33, 40), (2, 32, 3), (1, 64), (32, 1, 1), (31, 31), (32, 2, 34)]),
    st.integers(0, 2**31),
)
def test_fibres_follow_the_written_law(name, shape, seed):
    draw = torch.Generator().manual_seed(seed)
    count = math.prod(shape)
    # Rows of very different size, so that some are held to the smallest scale and some are not judged.
    powers = torch.randint(-16, 5, shape[:1] + (1,) * (len(shape) - 1), generator=draw).double().exp2()
    magnitude = (torch.rand(shape, generator=draw, dtype=torch.float64) * powers).reshape(-1)
    target, reference = (
        torch.rand(count, generator=draw, dtype=torch.float64) * magnitude * spread for spread in (0.5, 0.15)
    )
    scale = float(magnitude.max())
    got = slices_of(target, reference, magnitude, shape, FORMATS[name], scale)
    assert [item.axis for item in got] == [axis for axis, size in enumerate(shape) if size >= 32]
    for item in got:
        every = fibres(target.tolist(), reference.tolist(), magnitude.tolist(), shape, item.axis, name)
        judged = {index: value for index, value in every.items() if value is not None}
        assert item.length == shape[item.axis]
        assert item.judged_share == pytest.approx(len(judged) / len(every), rel=1e-12)
        worst = max((value[4] for value in judged.values()), default=Fraction(0))
        assert item.reference_quotient == pytest.approx(
            float(max((v[3] for v in judged.values()), default=0)), rel=1e-9
        )
        assert item.target_quotient == pytest.approx(float(worst), rel=1e-9)
        if worst:
            s, f, error, _, excess = judged[item.worst]
            assert float(excess) == pytest.approx(float(worst), rel=1e-9)
            reported = (item.worst_scale, item.worst_floor, item.worst_error)
            assert reported == pytest.approx((float(s), float(f), float(error)), rel=1e-12)


def test_a_zeroed_row_is_seen_beside_a_row_a_thousand_times_as_large():
    golden = torch.linspace(0.5, 1.0, 64, dtype=torch.float64).repeat(3, 1) * torch.tensor([[1.0], [1000.0], [1.0]])
    error = torch.zeros_like(golden)
    error[2] = golden[2]
    flat = (error.reshape(-1), torch.zeros(192, dtype=torch.float64), golden.reshape(-1))
    (item,) = slices_of(*flat, (3, 64), FORMATS["float32"], 1000.0)
    assert item.worst == (2, -1)
    assert item.target_quotient == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("shape", "scale"), [((64,), 1.0), ((), 1.0), ((2, 31), 1.0), ((64, 64), 0.0)])
def test_vectors_short_axes_and_zeros_have_no_fibres(shape, scale):
    flat = torch.zeros(math.prod(shape), dtype=torch.float64)
    assert slices_of(flat, flat, flat, shape, FORMATS["float32"], scale) == ()


def signed_errors(values, golden, name):
    """The mean and standard error of clipped signed errors in ulps, in 50 digits."""
    clip = 32 if name in WIDE else Fraction(1, 2)
    outward, upward = [], []
    for value, g in zip(values, golden, strict=True):
        if g == 0:
            continue
        base = g if name in WIDE else nearest_even(g, name)
        e = max(-clip, min(clip, (Fraction(value) - Fraction(base)) / quantum(Fraction(g), name)))
        upward.append(e)
        outward.append(e if g > 0 else -e)

    def summary(errors):
        mean = sum(errors) / len(errors)
        variance = sum((e - mean) ** 2 for e in errors) / (len(errors) - 1)
        with mpmath.workdps(50):
            ratio = mpmath.mpf(variance.numerator) / variance.denominator / len(errors)
            return float(mean), float(mpmath.sqrt(ratio))

    return len(upward), summary(outward), summary(upward)


def bias(values, golden, name, compared=None, cols=1):
    fmt, g = FORMATS[name], torch.tensor(golden, dtype=torch.float64)
    chosen = torch.ones(len(golden), dtype=torch.bool) if compared is None else compared
    return bias_of(torch.tensor(values, dtype=torch.float64), g, round_to(g, fmt), ulp(g, fmt), chosen, fmt, cols)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(["float32", "bfloat16", "float16", "float8_e5m2", "float64"]), st.integers(0, 2**31))
def test_bias_follows_the_written_law(name, seed):
    draw = torch.Generator().manual_seed(seed)
    golden = torch.randn(300, generator=draw, dtype=torch.float64)
    golden[:5] = 0.0
    noise = torch.randn(300, generator=draw, dtype=torch.float64) * FORMATS[name].unit * golden.abs()
    values = round_to(golden + noise * torch.tensor([1.0, 0.1, 40.0]).repeat(100), FORMATS[name])
    got = bias(values.tolist(), golden.tolist(), name)
    count, outward, upward = signed_errors(values.tolist(), golden.tolist(), name)
    assert (got.count, got.distinct) == (count, 64)
    assert (got.outward, got.outward_error) == pytest.approx(outward, rel=1e-9, abs=1e-12)
    assert (got.upward, got.upward_error) == pytest.approx(upward, rel=1e-9, abs=1e-12)


def test_truncation_is_a_bias_and_rounding_is_none():
    """Golden runs through every sixteenth between neighbours: half of them are truncated by one ulp, clipped at 0.5."""
    golden = [sign * (1 + (k + 0.5) / 16 * 2.0**-7) for k in range(512) for sign in (1, -1)]
    truncated = [math.copysign(math.floor(abs(g) * 128) / 128, g) for g in golden]
    got = bias(truncated, golden, "bfloat16")
    assert (got.outward, got.upward) == (-0.25, 0.0)
    rounded = round_to(torch.tensor(golden, dtype=torch.float64), FORMATS["bfloat16"]).tolist()
    right = bias(rounded, golden, "bfloat16")
    assert (right.outward, right.upward, right.outward_error) == (0.0, 0.0, 0.0)


def test_rows_that_are_off_as_one_are_so_many_draws_and_not_so_many_elements():
    """Of 16 rows of 32, off by +1/4 or -1/4 ulp each, 10 go up."""
    golden = [1 + k * 2.0**-10 for k in range(512)]
    shifts = [0.25 if row % 3 else -0.25 for row in range(16)]
    values = [g + shifts[k // 32] * 2.0**-23 for k, g in enumerate(golden)]
    got = bias(values, golden, "float32", cols=32)
    mean = sum(shifts) / 16
    by_hand = math.sqrt(sum((shift - mean) ** 2 for shift in shifts) / 15 / 16)
    assert got.upward == pytest.approx(mean)
    assert got.upward_by_rows == got.outward_by_rows == pytest.approx(by_hand)
    assert got.upward_by_rows == pytest.approx(got.upward_error * math.sqrt(32), rel=0.05)
    assert bias(values, golden, "float32").upward_by_rows == 0.0


def test_rows_that_are_all_off_alike_stay_a_bias():
    golden = [1 + k * 2.0**-10 for k in range(512)]
    got = bias([g + 0.25 * 2.0**-23 for g in golden], golden, "float32", cols=128)
    assert (got.upward, got.upward_by_rows) == (0.25, 0.0)


def test_too_few_elements_or_too_few_values_have_no_bias():
    many = [1 + k * 2.0**-20 for k in range(256)]
    assert bias(many, many, "float32") is not None
    assert bias(many[:255], many[:255], "float32") is None
    assert bias(many, [*many[:255], 0.0], "float32") is None
    few = [1 + k % 63 * 2.0**-20 for k in range(256)]
    assert bias(few, few, "float32") is None
    half = torch.arange(512) % 2 == 0
    assert bias(many * 2, many * 2, "float32", half).count == 256


@pytest.mark.parametrize("shift", [-40.0, -32.0, -31.5, -0.25, 0.0, 3.0, 32.0, 33.0])
def test_a_bias_is_clipped_at_four_times_its_limit(shift):
    golden = [0.5 + k / 256 for k in range(300)]
    got = bias([g + shift * float(quantum(Fraction(g), "float32")) for g in golden], golden, "float32")
    assert got.upward == pytest.approx(max(-32.0, min(32.0, shift)), abs=1e-6)
