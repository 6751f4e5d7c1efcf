"""The shapes of a level, by hand."""

import math

import pytest

from opcheck.core.case import Dims
from opcheck.core.policy import Contract
from opcheck.core.shapes import INTERPRETED_ELEMENTS, runnable
from opcheck.core.sweep import several_tiles, shapes_of
from opcheck.core.tiles import Tile

NORM = Contract(
    name="ops::norm", kind="normalization", dtypes=("float32",), dims=("...", "rows", "cols"), reduces=("cols",),
    tiles={"cols": (128,)}, production=({"rows": 4096},),
)  # fmt: skip
SEEN = (Tile(dim="cols", size=1024), Tile(dim="rows", size=16), Tile(dim="rows", size=8), Tile(dim="rows", size=100))


def sizes(level, name, tiles=SEEN):
    return {dims[name] for dims in shapes_of(NORM, level, tiles)}


def test_one_beyond_each_tile_at_the_quick_level():
    assert list(shapes_of(NORM, "quick", SEEN)) == [
        Dims(rows=1, cols=1), Dims(rows=3, cols=129), Dims(rows=3, cols=1025), Dims(rows=17, cols=37),
    ]  # fmt: skip


def test_both_sides_of_each_tile_and_several_tiles():
    assert sizes("standard", "cols") >= {127, 128, 129, 257, 1023, 1024, 1025, 2049}
    assert sizes("standard", "rows") >= {15, 16, 17, 33, 7, 8, 9}
    assert not {1023, 1024, 1025} & sizes("standard", "cols", tiles=()), "only what was seen or declared"


def test_more_tiles_are_tried_at_a_higher_level():
    assert not {99, 100, 101, 201} & sizes("standard", "rows"), "the third tile observed along a dimension waits"
    assert {99, 100, 101, 201} <= sizes("full", "rows")


def test_several_tiles_along_every_dimension_at_once():
    found = several_tiles(NORM, (Tile(dim="cols", size=64), Tile(dim="rows", size=16), Tile(dim="rows", size=8)))
    assert found == Dims(rows=33, cols=129)
    fewer = several_tiles(NORM, (Tile(dim="cols", size=1024), Tile(dim="rows", size=32)))
    assert fewer == Dims(rows=33, cols=1025), "2049 x 65 is too much for the interpreter"
    assert math.prod(fewer.values()) <= INTERPRETED_ELEMENTS
    assert several_tiles(NORM, (Tile(dim="cols", size=4096), Tile(dim="rows", size=64))) is None
    assert several_tiles(NORM, (Tile(dim="cols", size=64, flat=True),)) is None


def test_a_block_that_covers_a_dimension_is_no_tile_of_several():
    found = several_tiles(NORM, (Tile(dim="cols", size=64, whole=True), Tile(dim="rows", size=16)))
    assert found == Dims(rows=33, cols=37)


def test_other_dimensions_shrink_before_the_reduced_one_does():
    """Five dimensions are too much at 3 each: 3 * 3 * 17 * 16 * 37 is beyond the room, 17 * 16 * 37 is not."""
    attention = Contract(
        name="ops::attention", kind="attention", dtypes=("float32",),
        dims=("kv_heads", "group", "queries", "head_dim", "keys"), reduces=("keys",), smallest={"head_dim": 16},
        tiles={"queries": (16,), "keys": (64,)},
    )  # fmt: skip
    base = Dims(kv_heads=1, group=1, queries=1, head_dim=16, keys=1)
    assert list(shapes_of(attention, "quick")) == [
        base,
        Dims({**base, "queries": 17, "keys": 37}),
        Dims(kv_heads=2, group=2, queries=2, head_dim=16, keys=65),
    ]
    tiles = (Tile(dim="queries", size=16), Tile(dim="keys", size=64))
    assert several_tiles(attention, tiles) == Dims({**base, "queries": 17, "keys": 65})


def test_a_flat_tile_is_met_with_the_other_dimensions_at_their_smallest():
    flat = [
        dims for dims in shapes_of(NORM, "standard", (Tile(dim="cols", size=512, flat=True),)) if dims["cols"] > 500
    ]
    assert {(dims["rows"], dims["cols"]) for dims in flat} == {(1, 511), (1, 512), (1, 513), (1, 1025)}


def test_ranks_ones_rows_beyond_a_grid_axis_and_production():
    shapes = list(shapes_of(NORM, "standard"))
    assert {dims.leading for dims in shapes} == {(), (2,), (2, 1), (2, 1, 3)}
    assert Dims(rows=1, cols=37) in shapes
    assert Dims(rows=3, cols=1) in shapes
    assert Dims(rows=65537, cols=1) in shapes
    assert Dims(rows=4096, cols=37) in shapes
    missing = []
    runnable_ones = list(runnable(shapes, "cpu", missing))
    assert Dims(rows=65537, cols=1) not in runnable_ones
    assert Dims(rows=65537, cols=1) in runnable(shapes, "cuda", [])
    assert [text.partition(":")[0] for text in missing] == ["shape rows=65537, cols=1", "shape rows=4096, cols=37"]


def test_a_shape_of_too_many_programs_is_left_to_a_gpu():
    shapes, missing = (Dims(rows=2049, cols=1), Dims(rows=3, cols=129)), []

    def cost(dims):
        return 0.01 * dims["rows"]

    assert list(runnable(shapes, "cpu", missing, cost=cost)) == [Dims(rows=3, cols=129)]
    assert missing == ["shape rows=2049, cols=1: too many programs for the interpreter; audit it on a GPU"]
    assert list(runnable(shapes, "cuda", [], cost=cost)) == list(shapes)


@pytest.mark.parametrize("level", ["quick", "standard", "full"])
def test_a_contract_without_dimensions_has_one_shape(level):
    scalar = Contract(name="ops::scalar", kind="elementwise", dtypes=("float32",), dims=())
    assert set(shapes_of(scalar, level)) == {Dims()}
