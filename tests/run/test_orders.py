"""When two orders of a reduction count as the same answer, put back in order."""

import torch

from opcheck.run.orders import _same


def test_fp64_noise_is_the_same_and_other_elements_are_not():
    golden = torch.linspace(1.0, 2.0, 9, dtype=torch.float64)
    assert _same(golden * (1 + 1e-15), golden, 0.0)
    assert not _same(golden.flip(0), golden, 0.0)
    assert not _same(golden[:8], golden, 0.0)


def test_where_golden_is_only_noise_it_counts_by_the_errors_that_it_judges():
    golden = torch.tensor([3e-17, -1e-17, 2e-17], dtype=torch.float64)
    moved = golden.flip(0)
    assert not _same(moved, golden, 0.0)
    assert _same(moved, golden, 1e-3 * 1e-8), "the reference's errors are 1e-8"


def test_infinities_are_left_to_the_law_of_structure():
    golden = torch.tensor([1.0, torch.inf, torch.nan], dtype=torch.float64)
    assert _same(golden.clone(), golden, 0.0)
    assert _same(torch.full((3,), torch.nan), golden, 0.0)
