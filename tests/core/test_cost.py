"""What a case costs grows as its launches were seen to grow."""

import pytest

from opcheck.core.case import Dims
from opcheck.core.cost import CASE, COMPILED_CASE, PROGRAM, case_cost
from opcheck.core.facts import Launch
from opcheck.core.policy import Contract
from opcheck.core.tiles import probe_shapes

ROWS = Contract(
    name="ops::some", kind="reduction", dtypes=("float32",), dims=("...", "rows", "cols"), reduces=("cols",)
)


def seen(grid):
    return tuple(Launch(kernel="k", place="p", dims=dict(dims), grid=grid(dims)) for dims in probe_shapes(ROWS))


def test_a_program_for_each_row():
    cost = case_cost(ROWS, seen(lambda d: (d["rows"], 1, 1)), "cpu")
    for rows in (1, 5, 64, 300, 4000):
        assert cost(Dims(rows=rows, cols=129)) == pytest.approx(CASE + PROGRAM * rows)
    assert cost(Dims(rows=3, cols=5000)) == pytest.approx(CASE + PROGRAM * 3)
    leading = Dims({"...0": 2, "...1": 3, "rows": 5, "cols": 129})
    assert cost(leading) == pytest.approx(CASE + PROGRAM * 30)


def test_tiles_of_both_dimensions():
    cost = case_cost(ROWS, seen(lambda d: (-(-d["rows"] // 4), -(-d["cols"] // 128), 1)), "cpu")
    # 2 programs along 5 rows, 2 along 129 columns: measured; 75 along 300 rows, 3 along 300 columns
    assert cost(Dims(rows=5, cols=129)) == pytest.approx(CASE + PROGRAM * 4)
    assert cost(Dims(rows=300, cols=300)) == pytest.approx(CASE + PROGRAM * 225)


def test_a_dimension_without_programs_of_its_own_costs_nothing_below_what_was_probed_either():
    cost = case_cost(ROWS, seen(lambda d: (d["rows"], 1, 1)), "cpu")
    assert cost(Dims(rows=300, cols=1)) == pytest.approx(CASE + PROGRAM * 300)


def test_without_launches_and_on_a_gpu():
    assert case_cost(ROWS, (), "cpu")(Dims(rows=5, cols=129)) == CASE
    cost = case_cost(ROWS, seen(lambda d: (d["rows"], 1, 1)), "cuda")
    assert cost(Dims(rows=5, cols=129)) == pytest.approx(COMPILED_CASE, rel=1e-3)
    assert cost(Dims(rows=1 << 14, cols=1 << 13)) > 2 * COMPILED_CASE
