"""Tiles are read off launches: made here by the grids and blocks that kernels are known to use."""

import pytest

from opcheck.core.case import Dims
from opcheck.core.facts import Facts, Launch, facts_from
from opcheck.core.policy import Contract
from opcheck.core.report import to_json
from opcheck.core.tiles import PROBED, observed_tiles, probe_shapes, tiles_of_config

ROWS = Contract(name="ops::some", kind="reduction", dtypes=("float32",), dims=("rows", "cols"), reduces=("cols",))
MATMUL = Contract(name="ops::mm", kind="contraction", dtypes=("float32",), dims=("m", "k", "n"), reduces=("k",))


def cdiv(size, tile):
    return -(-size // tile)


def power(size):
    return 1 << (size - 1).bit_length()


def launches(contract, grid, constants, *, kernel="ops.kernel._kernel", config=-1):
    return tuple(
        Launch(
            kernel=kernel, place="ops/kernel.py:7", dims=dict(dims), grid=(*grid(dims), 1, 1, 1)[:3],
            constants=constants(dims), config=config,
        )
        for dims in probe_shapes(contract)
    )  # fmt: skip


def tiles(contract, *found):
    return {(tile.dim, tile.size, tile.flat) for tile in observed_tiles(sum(found, ()), contract)}


def test_every_dimension_is_probed_at_sizes_of_its_own():
    shapes = probe_shapes(MATMUL)
    for name in MATMUL.dims:
        assert {dims[name] for dims in shapes} >= set(PROBED)
    for dims in shapes[1:]:
        assert sum(dims[name] != shapes[0][name] for name in MATMUL.dims) == 1


def test_a_row_per_program_and_a_tile_of_columns():
    found = launches(ROWS, lambda d: (d["rows"], cdiv(d["cols"], 256)), lambda d: {"BLOCK": 256})
    assert tiles(ROWS, found) == {("cols", 256, False)}
    assert tiles(ROWS, launches(ROWS, lambda d: (cdiv(d["cols"], 64), d["rows"]), lambda d: {"N": 64})) == {
        ("cols", 64, False)
    }, "the grid proves a tile, whatever its name"


def test_a_block_that_follows_the_size_up_to_a_limit():
    limited = launches(ROWS, lambda d: (d["rows"],), lambda d: {"BLOCK": min(power(d["cols"]), 1024)})
    assert tiles(ROWS, limited) == {("cols", 1024, False)}
    whole = launches(ROWS, lambda d: (d["rows"],), lambda d: {"BLOCK": power(d["cols"])})
    assert tiles(ROWS, whole) == {("cols", 64, False)}, "edges at powers of two"


def test_dimensions_that_are_flattened():
    found = launches(ROWS, lambda d: (cdiv(d["rows"] * d["cols"], 512),), lambda d: {"BLOCK": 512})
    assert tiles(ROWS, found) == {("cols", 512, True)}


def test_a_matrix_product_with_one_loop():
    found = launches(
        MATMUL, lambda d: (cdiv(d["m"], 64) * cdiv(d["n"], 32),), lambda d: {"BM": 64, "BN": 32, "BK": 16, "GROUP_M": 8}
    )  # fmt: skip
    assert tiles(MATMUL, found) == {("m", 64, False), ("n", 32, False), ("k", 16, False)}


def test_what_is_looped_over_is_tried_where_nothing_else_explains():
    found = launches(ROWS, lambda d: (8,), lambda d: {"BLOCK_ROWS": 16, "BLOCK_COLS": 128})
    assert tiles(ROWS, found) == {(dim, size, False) for dim in ("rows", "cols") for size in (16, 128)}


@pytest.mark.parametrize("constants", [{}, {"EPS": 1}, {"HAS_BIAS": 1}, {"BLOCK": 100}, {"COLS": 4}])
def test_constants_that_are_no_tiles(constants):
    assert tiles(ROWS, launches(ROWS, lambda d: (d["rows"],), lambda d: constants)) == set()


def test_a_persistent_grid_proves_nothing_but_its_loop_is_tried():
    found = launches(ROWS, lambda d: (min(132, cdiv(d["rows"], 4)),), lambda d: {"BLOCK": 4})
    assert ("rows", 4, False) in tiles(ROWS, found)


def test_each_launch_of_a_kernel_is_read_by_itself():
    first = launches(ROWS, lambda d: (cdiv(d["rows"], 16),), lambda d: {"BLOCK": 16})
    second = launches(ROWS, lambda d: (cdiv(d["cols"], 32),), lambda d: {"BLOCK": 32})
    both = tuple(launch for pair in zip(first, second, strict=True) for launch in pair)
    assert {("rows", 16, False), ("cols", 32, False)} <= tiles(ROWS, both)


def test_the_tiles_of_one_configuration():
    grid = lambda d: (d["rows"], cdiv(d["cols"], 64))  # noqa: E731
    first = launches(ROWS, grid, lambda d: {"BLOCK": 64}, config=0)
    other = launches(ROWS, grid, lambda d: {"BLOCK": 256}, config=1)[:1]
    assert tiles(ROWS, first, other) == {("cols", 64, False)}
    assert [(tile.dim, tile.size) for tile in tiles_of_config(first + other, ROWS, 1)] == [("cols", 256)]
    assert [(tile.dim, tile.size) for tile in tiles_of_config(first + other, ROWS, 0)] == [("cols", 64)]
    assert tiles_of_config(first + other, ROWS, 2) == ()


def test_no_launch_at_the_representative_shape_no_tile():
    found = launches(ROWS, lambda d: (d["rows"], cdiv(d["cols"], 256)), lambda d: {"BLOCK": 256})
    assert observed_tiles(found[1:], ROWS) == ()
    assert observed_tiles((), ROWS) == ()


def test_facts_survive_the_channel():
    found = launches(ROWS, lambda d: (d["rows"], 3), lambda d: {"BLOCK": 256}, config=2)
    facts = Facts(launches=found, configs={"ops.kernel._kernel": 3})
    assert facts_from(to_json(facts)) == facts
    assert Dims(facts_from(to_json(facts)).launches[0].dims) == probe_shapes(ROWS)[0]
