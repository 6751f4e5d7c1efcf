"""Other sizes of a case are legal, near, and not the case's own."""

from dataclasses import replace

from opcheck.core.case import Case, Dims
from opcheck.core.policy import Contract
from opcheck.core.resized import resized, variations

CONTRACT = Contract(name="t::op", kind="reduction", dtypes=("float32",), dims=("rows", "cols"), reduces=("cols",))
CASE = Case(op="t::op", dtype="float32", dims=Dims(rows=5, cols=129))


def test_another_size_is_the_next_larger_batch():
    assert dict(resized(CONTRACT, CASE).dims) == {"rows": 6, "cols": 129}


def test_a_dimension_that_cannot_change_is_passed_over():
    fixed = replace(CONTRACT, sizes={"rows": (5,)})
    assert dict(resized(fixed, CASE).dims) == {"rows": 5, "cols": 130}
    assert resized(replace(fixed, largest={"cols": 129}, smallest={"cols": 129}), CASE) is None


def test_multiples_and_limits_are_kept():
    case = replace(CASE, dims=Dims(rows=8, cols=129))
    contract = replace(CONTRACT, multiple={"rows": 8}, largest={"rows": 16, "cols": 130})
    found = [tuple(dims.values()) for dims in variations(contract, case.dims, steps=3)]
    assert found == [(16, 129), (8, 130)]


def test_each_shape_comes_once():
    found = [tuple(dims.items()) for dims in variations(CONTRACT, CASE.dims, steps=24)]
    assert len(found) == len(set(found)) == 48
