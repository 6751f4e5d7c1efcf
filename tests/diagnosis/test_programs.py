"""From wrong elements to programs: told where the grid can be read in one way, and else not."""

import pytest
import torch

from opcheck.core.diagnosis.programs import Launched, programs, tiles


def wrong(*shape, at):
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[at] = True
    return mask


@pytest.mark.parametrize(("grid", "constants", "mask", "words"), [
    ((3, 1, 1), {"BLOCK": 128}, wrong(3, 100, at=2), "program [2, 0, 0] of k, of 3"),
    ((3, 1, 1), {"BLOCK": 64}, wrong(2, 130, at=(1, 129)), "program [2, 0, 0] of k, of 3"),
    ((5, 1, 1), {"BLOCK": 64}, wrong(2, 130, at=(1, 129)), "program [4, 0, 0] of k, of 5"),
    ((2, 4, 1), {"M": 32, "N": 64}, wrong(40, 200, at=(slice(32, 40), slice(0, 65))),
     "programs [1, 0, 0], [1, 1, 0] of k, of 8"),
    ((2, 3, 1), {"M": 32, "N": 16}, wrong(40, 48, at=0), ""),
    ((20, 1, 1), {"BLOCK": 8}, wrong(20, 7, at=slice(None)), "20 of 20 programs of k"),
    ((6, 1, 1), {"BLOCK": 8}, wrong(6, 6, at=0), ""),
    ((7, 1, 1), {"BLOCK": 8}, wrong(5, 9, at=0), ""),
    ((1, 1, 1), {"BLOCK": 8}, wrong(5, 9, at=0), ""),
])  # fmt: skip
def test_programs(grid, constants, mask, words):
    assert programs(Launched(kernel="k", grid=grid, constants=constants), mask) == words


def test_tiles_are_the_steps_of_the_grid_and_else_the_constants():
    by_rows = Launched(kernel="k", grid=(5, 1, 1), constants={"BLOCK": 64, "n": 130})
    assert tiles(by_rows, ("rows", "cols"), (5, 130)) == {"cols": (64,)}
    by_tiles = Launched(kernel="k", grid=(5, 3, 1), constants={"BLOCK": 64})
    assert tiles(by_tiles, ("rows", "cols"), (5, 130)) == {"cols": (64,)}
