"""Golden on scalars of many digits: values by hand and from mpmath itself."""

import math

import pytest
import torch
from mpmath import mp

from opcheck.run.exact import DIGITS, Exact, NotCovered, to_float


def value(function, *numbers):
    with mp.workdps(DIGITS):
        return to_float(function(*(Exact(mp.mpf(number)) for number in numbers)))


@pytest.mark.parametrize(("function", "numbers", "expected"), [
    (lambda x: torch.log(1 + x), (2.0**-60,), 2.0**-60 - 2.0**-121),
    (lambda x: (1 + x) - 1, (2.0**-100,), 2.0**-100),
    (lambda x: torch.expm1(x), (2.0**-60,), 2.0**-60),
    (lambda x: 2 - x, (3.0,), -1.0),
    (lambda x: 1 / x, (4.0,), 0.25),
    (lambda x: x / 0.0, (-4.0,), -math.inf),
    (lambda x: x**3, (2.0,), 8.0),
    (lambda x: torch.exp2(x), (10.0,), 1024.0),
    (lambda x: x.rsqrt() + x.sqrt(), (4.0,), 2.5),
    (lambda x: torch.where(x > 0, x, x * 0.5), (-4.0,), -2.0),
    (lambda x: torch.where((x > 0) & ~(x > 3), 1.0, 0.0), (2.0,), 1.0),
    (lambda x: x.clamp(min=-1, max=1), (5.0,), 1.0),
    (lambda x, y: torch.maximum(x, y) - torch.minimum(x, y), (5.0, 7.0), 2.0),
    (lambda x: torch.nn.functional.silu(x), (0.0,), 0.0),
    (lambda x: torch.nn.functional.softplus(x), (0.0,), math.log(2)),
    (lambda x: torch.nn.functional.gelu(x, approximate="tanh"), (0.0,), 0.0),
    (lambda x: torch.sigmoid(x.to(torch.float32)).double(), (0.0,), 0.5),
    (lambda x: torch.add(x, x, alpha=2), (1.0,), 3.0),
    (lambda x: abs(-x).square().reciprocal(), (2.0,), 0.25),
])  # fmt: skip
def test_an_operation_has_its_value(function, numbers, expected):
    assert value(function, *numbers) == expected


@pytest.mark.parametrize("function", [torch.exp, torch.tanh, torch.erf, torch.special.erfc, torch.sin, torch.cos,
                                      torch.log1p, torch.expm1, torch.nn.functional.gelu, torch.nn.functional.silu,
                                      torch.nn.functional.relu, torch.nn.functional.softplus,
                                      torch.nn.functional.logsigmoid, torch.sigmoid])  # fmt: skip
@pytest.mark.parametrize("number", [-0.75, 0.5, 3.25])
def test_an_operation_is_torchs(function, number):
    theirs = float(function(torch.tensor(number, dtype=torch.float64)))
    assert value(function, number) == pytest.approx(theirs, rel=1e-14)


def test_what_has_no_real_value_is_nan():
    assert math.isnan(value(torch.log, -1.0))
    assert math.isnan(value(torch.sqrt, -1.0))
    assert math.isnan(value(lambda x: x / 0.0, 0.0))


def test_an_operation_beyond_the_table_is_named():
    with pytest.raises(NotCovered, match="special_i0e"):
        value(torch.special.i0e, 1.0)
    with pytest.raises(NotCovered, match="cumsum"):
        value(lambda x: x.cumsum(-1), 1.0)
