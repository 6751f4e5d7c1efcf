"""Where wrong elements are, on masks made by hand."""

import pytest
import torch

from opcheck.core.pattern import locate

ROWS, COLS = 8, 130


def located(place, change=lambda g: g + 0.5, names=("rows", "cols")):
    """Locate a change made at one place of a golden without zeros."""
    golden = torch.arange(1.0, ROWS * COLS + 1, dtype=torch.float64).reshape(ROWS, COLS)
    target = golden.clone()
    target[place] = change(golden[place])
    wrong = ~(target == golden)
    return locate(wrong, target, golden, axes=names)


everywhere = slice(None)


@pytest.mark.parametrize(("place", "where", "looks_like"), [
    ((everywhere, -1), "8 of 1040 elements, all in the last of cols", "the tail of cols"),
    ((everywhere, slice(128, None)), "16 of 1040 elements, all in cols 128 to 129, the end", "the tail of cols"),
    ((everywhere, 5), "8 of 1040 elements, all in cols 5", "one index of cols"),
    ((3, everywhere), "130 of 1040 elements, all in rows 3", "one index of rows"),
    ((everywhere, slice(32, 64)), "256 of 1040 elements, all in cols 32 to 63", "one block of cols"),
    ((everywhere, slice(1, None, 16)), "72 of 1040 elements, every 16th of cols from 1", "a stride of 16 along cols"),
    ((everywhere, [3, 40, 41]), "24 of 1040 elements, in 3 of 130 cols", ""),
    ((2, 7), "1 of 1040 elements, all in rows 2, all in cols 7", "one index of rows"),
    ((everywhere, everywhere), "1040 of 1040 elements, spread over the whole tensor", ""),
])  # fmt: skip
def test_where(place, where, looks_like):
    found = located(place)
    assert found.where == where
    assert (found.wrong, found.total) == (int(where.split()[0]), 1040)
    assert found.looks_like.startswith(looks_like)
    assert bool(found.looks_like) == bool(looks_like)


@pytest.mark.parametrize(("change", "looks_like"), [
    (lambda g: g * 0, "zeros where golden has none: never written, or masked away"),
    (lambda g: g * float("nan"), "NaN: never written, or 0/0"),
    (lambda g: g * 2, "golden times 2 throughout: a constant factor"),
    (lambda g: g * -1, "golden times -1 throughout: a constant factor"),
    (lambda g: g + 1000, ""),
    (lambda g: g * 1.01, "golden times 1.01 throughout: a constant factor"),
    (lambda g: g * (1 + 0.01 * torch.arange(COLS)), ""),
])  # fmt: skip
def test_what_the_values_look_like(change, looks_like):
    assert located((everywhere, everywhere), change).looks_like == looks_like


def test_nothing_wrong_any_more_means_that_it_is_not_deterministic():
    right = torch.ones(3, dtype=torch.float64)
    found = locate(torch.zeros(3, dtype=torch.bool), right, right)
    assert (found.wrong, found.total) == (0, 3)
    assert "not deterministic" in found.where


def test_unnamed_axes_are_numbered_and_a_scalar_has_none():
    assert located((everywhere, 5), names=()).where == "8 of 1040 elements, all in axis 1 5"
    one = torch.tensor(1.0, dtype=torch.float64)
    found = locate(torch.tensor(True), one * 3, one)
    assert found.where == "1 of 1 elements, spread over the whole tensor"
    assert found.looks_like == "", "one element has some ratio to golden whatever happened to it"
