"""The law of the grid against plain rationals: integers, and 8-bit floats whose steps differ from binade to binade."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opcheck.core.grid import NOISE, has_grid, misrounded, on_grid
from opcheck.core.measure import measure
from tests.core.exact import LAYOUTS

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
GRIDS = {
    torch.int8: tuple(map(Fraction, range(-128, 128))),
    torch.uint8: tuple(map(Fraction, range(256))),
    **{
        dtype: tuple(
            sorted({
                Fraction(value)
                for pattern in range(256)
                if math.isfinite(value := LAYOUTS[str(dtype).removeprefix("torch.")].decode(pattern))
            })
        )
        for dtype in (E4M3, E5M2)
    },
}  # fmt: skip


def wrong(dtype, target, golden, reference=None, *, overflow="saturate", steady=None):
    """Whether one number is not what the grid asks for."""
    t, f, g = (torch.tensor([value], dtype=torch.float64) for value in (target, reference or 0.0, golden))
    nudged = None if steady is None else torch.tensor([steady], dtype=torch.float64)
    return bool(misrounded(t, f, on_grid(f, g, dtype, overflow=overflow, steady=nudged)).wrong)


def expected(dtype, target, golden, reference):
    """The law in rationals: distances to every number of the grid, `golden` cut off at its ends."""
    grid = GRIDS[dtype]
    clipped = min(max(Fraction(golden), grid[0]), grid[-1])
    least = min(abs(number - clipped) for number in grid)
    if abs(Fraction(target) - clipped) > least + 2 * Fraction(NOISE) * abs(clipped):
        return True
    nearest = {number for number in grid if abs(number - clipped) == least}
    return len(nearest) == 2 and Fraction(reference) in nearest and target != reference


@st.composite
def cases(draw):
    """A grid, golden near its numbers or midpoints, and numbers of it nearby."""
    dtype = draw(st.sampled_from(list(GRIDS)))
    grid = GRIDS[dtype]
    at = draw(st.integers(0, len(grid) - 2))
    here, after = float(grid[at]), float(grid[at + 1])
    share = draw(st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0)))
    golden = (here + share * (after - here)) * (
        1.0 + draw(st.sampled_from((0.0, 2.0**-40, 2.0**-23, -(2.0**-23), 0.01)))
    )
    near = grid[max(at - 1, 0) : at + 3]
    target, reference = (float(draw(st.sampled_from(near))) for _ in range(2))
    return dtype, target, golden, reference


@settings(max_examples=400, deadline=None)
@given(cases())
def test_follows_the_law_in_rationals(case):
    dtype, target, golden, reference = case
    assert wrong(dtype, target, golden, reference) is expected(dtype, target, golden, reference)


@pytest.mark.parametrize(
    ("dtype", "golden", "even", "away"),
    [
        pytest.param(torch.int8, 0.5, 0.0, 1.0, id="0.5 -> 0"),
        pytest.param(torch.int8, -2.5, -2.0, -3.0, id="-2.5 -> -2"),
        pytest.param(torch.int8, 126.5, 126.0, 127.0, id="126.5 -> 126"),
        pytest.param(E4M3, 8.5, 8.0, 9.0, id="e4m3 8.5 -> 8"),
        pytest.param(E4M3, 17.0, 16.0, 18.0, id="e4m3 17 -> 16: steps of 2"),
        pytest.param(E4M3, 2.0**-10, 0.0, 2.0**-9, id="e4m3, half of the smallest -> 0"),
        pytest.param(E5M2, 9.0, 8.0, 10.0, id="e5m2 9 -> 8"),
    ],
)
def test_on_a_tie_the_reference_says_where_it_goes(dtype, golden, even, away):
    assert not wrong(dtype, even, golden, even)
    assert wrong(dtype, away, golden, even)
    assert not wrong(dtype, away, golden, away), "a reference may promise half away from zero"
    assert not wrong(dtype, away, golden, even, steady=golden * (1 + 2.0**-23)), "in float32 it is no tie"
    assert wrong(dtype, away, golden, even, steady=golden)
    assert not wrong(dtype, away, golden, 100.0), "a reference that is neither neighbour says nothing"


def test_a_midpoint_is_as_wide_as_four_roundings_of_float32():
    for away in (1 + 3.9 * 2.0**-24, 1 - 3.9 * 2.0**-24):
        assert not wrong(torch.int8, 100.0, 100.5 * away)
        assert not wrong(torch.int8, 101.0, 100.5 * away)
    assert wrong(torch.int8, 101.0, 100.5 * (1 - 4.1 * 2.0**-24))
    assert wrong(torch.int8, 100.0, 100.5 * (1 + 4.1 * 2.0**-24))


@pytest.mark.parametrize(
    ("dtype", "target", "golden", "overflow", "is_wrong"),
    [
        (torch.int8, 127.0, 300.0, "saturate", False),
        (torch.int8, 44.0, 300.0, "saturate", True),  # 300 - 256: it wraps
        (torch.int8, -128.0, -math.inf, "saturate", False),
        (torch.uint8, 0.0, -7.0, "saturate", False),
        (torch.int8, -1.0, math.nan, "saturate", False),  # integers have no NaN
        (E4M3, 448.0, 1e9, "saturate", False),
        (E4M3, 416.0, 1e9, "saturate", True),
        (E4M3, 448.0, 464.0, "nan", False),  # the tie beyond the largest goes to it
        (E4M3, math.nan, 1e9, "nan", False),  # where NaN stands is the business of structure
        (E4M3, math.nan, 1.0, "saturate", True),
    ],
)
def test_where_the_grid_ends(dtype, target, golden, overflow, is_wrong):
    assert wrong(dtype, target, golden, 448.0, overflow=overflow) is is_wrong


def test_grids_are_integers_and_floats_of_eight_bits():
    assert {
        dtype for dtype in (*GRIDS, torch.bool, torch.bfloat16, torch.float32, torch.complex64) if has_grid(dtype)
    } == set(GRIDS)


@pytest.mark.parametrize("dtype", [torch.int8, E4M3])
def test_measured(dtype):
    g = torch.tensor([[2.5, 7.0], [math.nan, 100.0]], dtype=torch.float64)
    f = torch.tensor([[2.0, 7.0], [0.0, 96.0]])
    t = torch.tensor([[3.0, 7.0], [0.0, 80.0]])
    if dtype is E4M3:
        g[0, 0], f[0, 0], t[0, 0] = 8.5, 8.0, 9.0
        g[1, 0] = 0.0
    got = measure("out", t.to(dtype), f.to(dtype), g, overflow="saturate", quantized=True)
    assert (got.grid, got.unequal, got.ties) == (True, 2, 1)
    assert [item.index for item in got.worst] == [(0, 0), (1, 1)]
    assert got.judged == (3 if dtype is torch.int8 else 4)
    right = measure("out", g.nan_to_num().round().to(dtype), f.to(dtype), g, overflow="saturate", quantized=True)
    assert (right.grid, right.unequal, right.ties) == (True, 0, 0)


def test_a_golden_of_integers_is_compared_as_such():
    g = torch.tensor([1, 2, 3], dtype=torch.int8)
    got = measure("out", g + 1, g, g, quantized=True)
    assert (got.grid, got.unequal) == (False, 3)
