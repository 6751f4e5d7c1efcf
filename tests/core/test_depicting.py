"""Pictures of tensors whose errors are known by hand."""

import math

import pytest
import torch

from opcheck.core.depicted import MOST_ELEMENTS
from opcheck.core.depicting import Trio, counted, error_map, histogram, pictures_of
from opcheck.core.pictures import ErrorMap, Histogram

INF, NAN = math.inf, math.nan


def trio(target, golden=None, reference=None, *, tensor="out", dtype="float32", **about):
    t = torch.as_tensor(target, dtype=torch.float64)
    g = torch.zeros_like(t) if golden is None else torch.as_tensor(golden, dtype=torch.float64)
    r = g if reference is None else torch.as_tensor(reference, dtype=torch.float64)
    return Trio(tensor=tensor, target=t, reference=r, golden=g, dtype=dtype, **about)


def test_a_small_tensor_is_shown_element_by_element_in_units_of_what_is_allowed():
    found = error_map(trio([[0.0, 2.0, 0.5], [-4.0, 0.0, 1.0]], axes=("rows", "cols")), 2.0, "the threshold")
    assert found == ErrorMap(
        unit="the threshold", size=2.0, shape=(2, 3), down="rows", across="cols", extent=(2, 3), block=(1, 1),
        tile=(0, 0), cells=((0.0, 1.0, 0.25), (2.0, 0.0, 0.5)),
    )  # fmt: skip


def test_a_cell_is_the_worst_of_its_block_and_the_last_one_may_be_cut():
    target = torch.zeros(3, 130)
    target[1, 129], target[2, 3] = 7.0, 5.0
    found = error_map(trio(target), 1.0, "one")
    assert (found.extent, found.block) == ((3, 130), (1, 4))
    assert [len(line) for line in found.cells] == [33, 33, 33]
    assert {(at, cell): value for at, line in enumerate(found.cells) for cell, value in enumerate(line) if value} == {
        (1, 32): 7.0,
        (2, 0): 5.0,
    }


@pytest.mark.parametrize("shape", [(1,), (64,), (65,), (1000,), (1, 1), (64, 64), (65, 64), (5, 4097), (300, 700)])
def test_a_map_never_has_more_than_64_by_64_cells_and_shows_the_one_wrong_element(shape):
    target = torch.zeros(shape)
    target.view(-1)[-1] = 3.0
    found = error_map(trio(target), 1.0, "one")
    assert len(found.cells) <= 64
    assert {len(line) for line in found.cells} <= set(range(1, 65))
    cells = [item for line in found.cells for item in line if not math.isnan(item)]
    assert sorted(cells)[-1] == 3.0
    assert sum(map(bool, cells)) == 1


def test_leading_axes_are_folded_by_their_maximum():
    target = torch.zeros(2, 3, 2, 2)
    target[0, 1, 0, 1], target[1, 2, 0, 1], target[1, 0, 1, 0] = 1.0, 9.0, 4.0
    found = error_map(trio(target, axes=("...0", "...1", "rows", "cols")), 1.0, "one")
    assert (found.down, found.across, found.shape) == ("rows", "cols", (2, 3, 2, 2))
    assert found.cells == ((0.0, 9.0), (4.0, 0.0))


def test_a_vector_is_written_a_tile_to_a_line_and_what_fills_the_last_line_is_nothing():
    target = torch.zeros(300)
    target[299] = 8.0
    found = error_map(trio(target, axes=("n",), tiles={"n": (128,)}), 1.0, "one")
    assert (found.down, found.across, found.extent, found.block) == ("n // 128", "n % 128", (3, 128), (1, 2))
    assert found.cells[2][21] == 8.0
    assert all(map(math.isnan, found.cells[2][22:]))
    assert not any(map(math.isnan, found.cells[2][:22]))


def test_tiles_are_told_where_one_size_is_known_and_there_are_several():
    known = {"rows": (2,), "cols": (4, 8)}
    assert error_map(trio(torch.ones(4, 8), axes=("rows", "cols"), tiles=known), 1.0, "one").tile == (2, 0)
    assert error_map(trio(torch.ones(2, 8), axes=("rows", "cols"), tiles=known), 1.0, "one").tile == (0, 0)


@pytest.mark.parametrize(("tensor", "target", "golden", "cell"), [
    ("out", NAN, 1.0, INF), ("out", INF, 1.0, INF), ("out", 1.0, INF, INF), ("out", -INF, INF, INF),
    ("out", INF, INF, 0.0), ("out", NAN, NAN, 0.0), ("out", 1.0, NAN, INF), ("grad x", 1.0, NAN, NAN),
    ("out", INF, 1e39, 0.0),  # beyond float32: Inf is the rounded golden
    ("out", 1.0, 1.0, 0.0),
])  # fmt: skip
def test_what_is_not_finite(tensor, target, golden, cell):
    found = error_map(trio([[target]], [[golden]], tensor=tensor), 1.0, "one").cells[0][0]
    assert repr(found) == repr(cell)


def test_rounding_to_two_digits_moves_no_cell_over_the_line():
    found = error_map(trio([[1.0, 1.0000001, 0.9999999]]), 1.0, "one").cells[0]
    assert found == (1.0, 1.01, 1.0)


def test_errors_may_be_allowed_element_by_element():
    found = error_map(trio([[3.0, 3.0]]), torch.tensor([[1.0, 6.0]], dtype=torch.float64), "an ulp of golden")
    assert found.cells == ((3.0, 0.5),)
    assert math.isnan(found.size)


def test_where_nothing_is_allowed_an_ulp_of_the_largest_golden_is_the_unit():
    found, _ = pictures_of(trio([[8.0, 9.0]], [[8.0, 8.0]], dtype="bfloat16"), 0.0, "the threshold")
    assert (found.unit, found.size) == ("an ulp of the largest |golden|", 2.0**-4)
    assert found.cells == ((0.0, 16.0),)


def test_integers_have_a_map_and_no_histogram():
    (found,) = pictures_of(trio([[3, 4]], [[3, 9]], dtype="int64"), 1.0, "one")
    assert found.cells == ((0.0, 5.0),)
    assert pictures_of(trio(torch.zeros(0, 3)), 1.0, "one") == ()


def test_a_huge_tensor_is_left_alone():
    huge = torch.zeros(1, dtype=torch.float64).expand(MOST_ELEMENTS + 1)
    assert pictures_of(trio(huge, huge), 1.0, "one") == ()


def test_small_errors_are_counted_in_even_bins_around_zero():
    target = [torch.tensor([-1.0, 0.0, 0.0, 1.0, NAN])]
    found = counted(target, [torch.tensor([0.01])], "ulp of golden")
    width = 2.0**-4
    assert found.edges[0] == -1.0 - width / 2
    assert found.edges[-1] == 1.0 + width / 2
    assert len(found.edges) == 34
    assert (found.target[0], found.target[16], found.target[-1], sum(found.target)) == (1, 2, 1, 4)
    assert found.reference == (*[0] * 16, 1, *[0] * 16)


def test_large_errors_are_counted_in_doubling_bins():
    found = counted([torch.tensor([-100.0, 0.2, 0.7, 3.0])], [torch.tensor([0.0, 1.5])], "ulp of golden")
    side = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
    assert found.edges == (*(-item for item in reversed(side)), *side)
    assert found.target == (1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0)
    assert found.reference == (0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0)


def test_whatever_lies_beyond_the_last_edge_is_counted_too():
    found = counted([torch.tensor([1e30, -1e30], dtype=torch.float64)], [torch.tensor([0.0])], "one")
    assert (found.target[0], found.target[-1], sum(found.target)) == (1, 1, 2)
    assert len(found.target) <= 51


def test_no_error_at_all_and_no_element():
    found = counted([torch.zeros(3)], [torch.zeros(3)], "one")
    assert (found.target, found.reference) == ((0, 3, 0), (0, 3, 0))
    assert sum(counted([torch.tensor([NAN])], [torch.tensor([INF])], "one").target) == 0


@pytest.mark.parametrize(("dtype", "unit", "middle"), [
    ("float32", "the reference's RMS error", (2.0, 1.0)),  # errors 0.5 and 0.25, RMS 0.25
    ("bfloat16", "ulp of golden", (16.0, 8.0)),  # at 4, an ulp is 2^-5
])  # fmt: skip
def test_wide_types_are_counted_in_the_references_error_and_narrow_ones_in_ulps(dtype, unit, middle):
    found = histogram(trio([4.5], [4.0], [4.25], dtype=dtype))
    assert isinstance(found, Histogram)
    assert found.unit == unit
    for counts, error in ((found.target, middle[0]), (found.reference, middle[1])):
        at = counts.index(1)
        assert found.edges[at] <= error <= found.edges[at + 1]


def test_an_exact_reference_leaves_ulps():
    assert histogram(trio([4.5], [4.0], dtype="float32")).unit == "ulp of golden"
