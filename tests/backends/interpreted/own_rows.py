"""What this repository's statistics of rows promise at the edges of their formulas; expected values by hand."""

import math

import pytest
import torch

from opcheck.backends.interpreter import install

assert install().active

from ops.l2_normalize import l2_normalize  # noqa: E402
from ops.logsumexp import logsumexp  # noqa: E402
from ops.variance import variance  # noqa: E402

INF, NAN = math.inf, math.nan


def with_gradient(op, rows, grad, *arguments):
    x = torch.tensor(rows, requires_grad=True)
    y = op(x, *arguments)
    y.backward(torch.tensor(grad))
    return y.detach(), x.grad


def same(found, expected):
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-6, atol=0.0, equal_nan=True)


@pytest.mark.parametrize(("norm", "eps", "gradient"), [
    (2.0, 1.0, [0.0, 2.5]),  # above eps only what is across x comes through, over the norm
    (1.0, 1.0, [0.0, 5.0]),  # at eps too, as torch.clamp has it
    (0.5, 1.0, [3.0, 5.0]),  # below it all does, over eps
    (0.0, 0.25, [12.0, 20.0]),
    (2.0**-130, 0.25, [12.0, 20.0]),
    (2.0**-130, 0.0, [0.0, INF]),  # 5 * 2^130 is beyond float32
    (2.0**-120, 0.0, [0.0, 5.0 * 2.0**120]),
    (2.0**120, 1.0, [0.0, 5.0 * 2.0**-120]),
])  # fmt: skip
def test_the_gradient_of_a_normalized_row_by_its_norm(norm, eps, gradient):
    y, grad = with_gradient(l2_normalize, [[norm, 0.0]], [[3.0, 5.0]], eps)
    same(y, [[norm / max(norm, eps), 0.0]])
    same(grad, [gradient])


def test_a_norm_whose_squares_overflow_or_vanish():
    for size in (2.0**100, 2.0**-100):
        same(l2_normalize(torch.tensor([[3 * size, -4 * size]]), 0.0), [[0.6, -0.8]])


def test_nan_and_inf_of_a_normalized_row():
    same(l2_normalize(torch.tensor([[1.0, INF], [1.0, NAN]])), [[0.0, NAN], [NAN, NAN]])


@pytest.mark.parametrize(("row", "out", "gradient"), [
    ([-INF, -INF], -INF, [NAN, NAN]),
    ([1.0, INF], INF, [0.0, NAN]),
    ([300.0, INF], INF, [0.0, NAN]),
    ([-INF, 2.0], 2.0, [0.0, 1.0]),
    ([1000.0, 1000.0], 1000.0 + math.log(2.0), [0.5, 0.5]),
    ([-1000.0, -1000.0], -1000.0 + math.log(2.0), [0.5, 0.5]),
    ([INF, NAN], NAN, [NAN, NAN]),
])  # fmt: skip
def test_logsumexp_of_extreme_rows(row, out, gradient):
    y, grad = with_gradient(logsumexp, [row], [1.0])
    same(y, [out])
    same(grad, [gradient])


def test_a_maximum_that_comes_in_a_later_tile():
    x = torch.full((3, 2049), -INF)
    x[0, 2048] = 5.0
    x[1, 0], x[1, 2048] = 300.0, INF
    x[2, :1024] = 0.0
    same(logsumexp(x), [5.0, INF, math.log(1024.0)])


def test_variance_at_mean_1000():
    x = 1000.0 + torch.arange(2049.0)[None] % 2  # 1,025 times 1,000 and 1,024 times 1,001
    deviations = 1025 * 1024 / 2049
    same(variance(x, 0), [deviations / 2049])
    same(variance(x, 1), [deviations / 2048])
    y, grad = with_gradient(variance, [[999.0, 1000.0, 1001.0, 1004.0]], [3.0], 1)
    same(y, [14.0 / 3.0])
    same(grad, [[-4.0, -2.0, 0.0, 6.0]])


def test_variance_of_one_element():
    same(variance(torch.tensor([[7.0]]), 0), [0.0])
    same(variance(torch.tensor([[7.0]]), 1), [NAN])
    with pytest.raises(ValueError, match="correction is -1, it should be at least 0"):
        variance(torch.ones(1, 3), -1)
