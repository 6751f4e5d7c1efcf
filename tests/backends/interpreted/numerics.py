"""Casts, arithmetic, products and libdevice under the repaired interpreter."""

import mpmath
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from opcheck.backends.interpreter import install
from tests.backends.interpreted.rounding import nearest

assert install().active

NARROW = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")


@triton.jit
def cast(x, o, BLOCK: tl.constexpr, ROUNDING: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i).to(o.dtype.element_ty, fp_downcast_rounding=ROUNDING))


@triton.jit
def binary(x, y, o, BLOCK: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    elif OP == "mul":
        c = a * b
    elif OP == "less":
        c = (a < b).to(tl.float32)
    elif OP == "fma":
        c = tl.fma(a, b, a)
    tl.store(o + i, c)


@triton.jit
def dot(a, b, o, SIDE: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr):
    i = tl.arange(0, SIDE)
    at = i[:, None] * SIDE + i[None, :]
    tl.store(o + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION, out_dtype=OUT))


@triton.jit
def unary(x, o, BLOCK: tl.constexpr, NAME: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, getattr(libdevice, NAME)(tl.load(x + i)))


@triton.jit
def erf(x, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.erf(tl.load(x + i)))


def run_cast(values, name, rounding=None):
    o = torch.zeros(len(values), dtype=getattr(torch, name))
    cast[(1,)](torch.from_numpy(values), o, BLOCK=len(values), ROUNDING=rounding)
    return o.double().numpy()


def float32_patterns(count=1 << 15):
    return np.random.default_rng(1).integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)


def near_ties(name, count=1 << 14):
    """FP64 values a hair beside the middles of neighbours, where a second rounding goes wrong."""
    rng = np.random.default_rng(2)
    coarse = nearest(rng.standard_normal(count) * 2.0 ** rng.integers(-8, 8, count), name)
    step = np.exp2(np.floor(np.log2(np.abs(coarse)))) * {"bfloat16": 2.0**-7, "float16": 2.0**-10}[name]
    return (coarse + step / 2) * (1 + rng.choice([-1.0, 0.0, 1.0], count) * 2.0**-45)


@pytest.mark.parametrize("name", NARROW)
def test_float32_rounds_once_to_nearest_even(name):
    values = float32_patterns()
    values[: values.size // 2] = np.random.default_rng(3).standard_normal(values.size // 2) * 300
    np.testing.assert_array_equal(run_cast(values, name), nearest(values, name))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_float64_rounds_once_to_nearest_even(name):
    values = near_ties(name)
    right = nearest(values, name)
    assert (nearest(values.astype(np.float32), name) != right).any()
    np.testing.assert_array_equal(run_cast(values, name), right)


@pytest.mark.parametrize(
    ("name", "limit"), [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("bfloat16", np.inf), ("float16", np.inf)]
)
def test_overflow_saturates_in_fp8_and_is_inf_elsewhere(name, limit):
    values = np.array([3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0], np.float32)
    got = run_cast(values, name)
    np.testing.assert_array_equal(got, [limit, -limit, limit, -limit, np.nan, 0.0, -0.0, 1.0])
    assert np.signbit(got[6])


def test_toward_zero_truncates():
    values = float32_patterns(1 << 12)
    values = values[np.isfinite(values)][:2048]
    cut = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    np.testing.assert_array_equal(run_cast(values, "bfloat16", "rtz"), cut)
    assert (run_cast(values, "bfloat16") != cut).mean() > 0.4


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_arithmetic_rounds_to_its_own_type(name, op):
    rng = np.random.default_rng(4)
    x, y = (nearest(rng.standard_normal(4096) * 2.0 ** rng.integers(-3, 4, 4096), name) for _ in range(2))
    exact = {"add": x + y, "sub": x - y, "mul": x * y}[op]
    inputs = [torch.from_numpy(v).to(getattr(torch, name)) for v in (x, y)]
    o = torch.zeros(4096, dtype=inputs[0].dtype)
    binary[(1,)](*inputs, o, BLOCK=4096, OP=op)
    np.testing.assert_array_equal(o.double().numpy(), nearest(exact, name))


def test_comparison_of_bfloat16_is_of_values():
    x, y = torch.tensor([-2.0, 1.0, -1.0, 3.0]).bfloat16(), torch.tensor([-1.0, 2.0, -2.0, 3.0]).bfloat16()
    o = torch.zeros(4)
    binary[(1,)](x, y, o, BLOCK=4, OP="less")
    assert o.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_fma_of_bfloat16_rounds_once():
    # x * y is 2^-8 (1 - 2^-14): a rounded product makes the sum a tie, which goes up to 1 + 2^-6.
    x = torch.tensor([1 + 2.0**-7] * 4).bfloat16()
    y = torch.tensor([2.0**-8 * (1 - 2.0**-7)] * 4).bfloat16()
    o = torch.zeros(4, dtype=torch.bfloat16)
    binary[(1,)](x, y, o, BLOCK=4, OP="fma")
    assert o.tolist() == [1 + 2.0**-7] * 4
    assert (x * y + x).tolist() == [1 + 2.0**-6] * 4


def run_dot(a, b, precision="ieee", out=tl.float32):
    o = torch.zeros(a.shape, dtype=torch.float16 if out is tl.float16 else torch.float32)
    dot[(1,)](a, b, o, SIDE=a.shape[0], PRECISION=precision, OUT=out)
    return o.double()


def test_tf32_truncates_its_operands():
    a, b = (torch.randn(32, 32, generator=torch.Generator().manual_seed(s)) for s in (1, 2))

    def cut(x):
        return torch.from_numpy((x.numpy().view(np.uint32) >> 13 << 13).view(np.float32)).double()

    exact, model = a.double() @ b.double(), cut(a) @ cut(b)
    assert (run_dot(a, b, "tf32") - model).abs().max() < 2e-5
    assert (run_dot(a, b, "tf32") - exact).abs().max() > 1e-3
    for precise in ("ieee", "tf32x3"):
        assert (run_dot(a, b, precise) - exact).abs().max() < 2e-5


@pytest.mark.parametrize("name", NARROW)
def test_narrow_products_are_exact_and_accumulate_in_float32(name):
    a, b = (torch.randn(32, 32, generator=torch.Generator().manual_seed(s)).to(getattr(torch, name)) for s in (3, 4))
    assert (run_dot(a, b) - a.double() @ b.double()).abs().max() < 1e-5


def test_half_accumulator_is_rounded_on_the_way():
    a = torch.full((32, 32), 45.25, dtype=torch.float16)  # each square is 2047.5625; 32 of them are 65522 > 65504
    assert run_dot(a, a, out=tl.float16).isinf().all()
    assert (run_dot(a, a) == 32 * 45.25**2).all()


CURVES = {
    "tanh": (mpmath.tanh, -4, 4),
    "erf": (mpmath.erf, -3, 3),
    "erfc": (mpmath.erfc, -3, 3),
    "exp": (mpmath.exp, -20, 20),
    "exp2": (lambda v: mpmath.power(2, v), -20, 20),
    "exp10": (lambda v: mpmath.power(10, v), -9, 9),
    "expm1": (mpmath.expm1, -2, 2),
    "log": (mpmath.log, 0.01, 20),
    "log2": (lambda v: mpmath.log(v, 2), 0.01, 20),
    "log10": (mpmath.log10, 0.01, 20),
    "log1p": (mpmath.log1p, -0.9, 5),
    "sin": (mpmath.sin, -9, 9),
    "cos": (mpmath.cos, -9, 9),
    "tan": (mpmath.tan, -1.4, 1.4),
    "asin": (mpmath.asin, -1, 1),
    "acos": (mpmath.acos, -1, 1),
    "atan": (mpmath.atan, -5, 5),
    "sinh": (mpmath.sinh, -5, 5),
    "cosh": (mpmath.cosh, -5, 5),
    "asinh": (mpmath.asinh, -5, 5),
    "acosh": (mpmath.acosh, 1.01, 9),
    "atanh": (mpmath.atanh, -0.99, 0.99),
    "sqrt": (mpmath.sqrt, 0, 9),
    "rsqrt": (lambda v: 1 / mpmath.sqrt(v), 0.01, 9),
    "cbrt": (lambda v: mpmath.sign(v) * mpmath.cbrt(abs(v)), -9, 9),
    "tgamma": (mpmath.gamma, 0.1, 9),
    "lgamma": (lambda v: mpmath.log(abs(mpmath.gamma(v))), 2.5, 9),
    "normcdf": (mpmath.ncdf, -3, 3),
    "fast_expf": (mpmath.exp, -20, 20),
    "fast_sinf": (mpmath.sin, -3, 3),
    "sinpi": (lambda v: mpmath.sin(mpmath.pi * v), -3, 3),
}


@pytest.mark.parametrize("name", CURVES)
def test_libdevice_is_the_exact_value_rounded(name):
    curve, low, high = CURVES[name]
    x = np.random.default_rng(5).uniform(low, high, 64).astype(np.float32)
    o = torch.zeros(64)
    unary[(1,)](torch.from_numpy(x), o, BLOCK=64, NAME=name)
    exact = np.array([float(curve(mpmath.mpf(float(v)))) for v in x])
    ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(o.double().numpy() - exact) / ulp) < 0.51


WHOLE = [-2.5, -1.5, -0.5, 0.4, 0.5, 1.5, 2.5, 7.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("floor", [-3, -2, -1, 0, 0, 1, 2, 7]),
        ("ceil", [-2, -1, 0, 1, 1, 2, 3, 7]),
        ("trunc", [-2, -1, 0, 0, 0, 1, 2, 7]),
        ("rint", [-2, -2, 0, 0, 0, 2, 2, 7]),
        ("round", [-3, -2, -1, 0, 1, 2, 3, 7]),
        ("abs", [2.5, 1.5, 0.5, 0.4, 0.5, 1.5, 2.5, 7]),
        ("saturatef", [0, 0, 0, 0.4, 0.5, 1, 1, 1]),
        ("isnan", [0] * 8),
        ("finitef", [1] * 8),
        ("rcp_rn", [-0.4, -2 / 3, -2, 2.5, 2, 2 / 3, 0.4, 1 / 7]),
    ],
)
def test_libdevice_whole_numbers(name, expected):
    o = torch.zeros(8)
    unary[(1,)](torch.tensor(WHOLE), o, BLOCK=8, NAME=name)
    np.testing.assert_array_equal(o.numpy(), np.array(expected, np.float32))


def test_language_erf_is_the_exact_value_rounded():
    x = np.linspace(-4, 4, 128, dtype=np.float32)
    o = torch.zeros(128)
    erf[(1,)](torch.from_numpy(x), o, BLOCK=128)
    exact = np.array([float(mpmath.erf(mpmath.mpf(float(v)))) for v in x])
    assert np.max(np.abs(o.double().numpy() - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 0.51


def test_libdevice_without_a_body_says_so():
    with pytest.raises(Exception, match="__nv_j0f has no body"):
        unary[(1,)](torch.zeros(4), torch.zeros(4), BLOCK=4, NAME="j0")


def test_libdevice_refuses_what_the_device_refuses():
    with pytest.raises(Exception, match="float16"):
        unary[(1,)](torch.zeros(4).half(), torch.zeros(4).half(), BLOCK=4, NAME="tanh")


def test_float_to_integer_saturates():
    x = torch.tensor([3e9, -3e9, float("nan"), float("inf"), 2.9, -2.9, 0.0, 1e8])
    o = torch.zeros(8, dtype=torch.int32)
    cast[(1,)](x, o, BLOCK=8, ROUNDING=None)
    assert o.tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1, 2, -2, 0, 100_000_000]


def test_int32_products_wrap():
    x = torch.tensor([2**30, -(2**31), 65536, 3], dtype=torch.int32)
    y = torch.tensor([4, 3, 65537, -7], dtype=torch.int32)
    o = torch.zeros(4, dtype=torch.int32)
    binary[(1,)](x, y, o, BLOCK=4, OP="mul")
    assert o.tolist() == [0, -(2**31), 65536, -21]
