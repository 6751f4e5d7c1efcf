"""The smallest case that fails alike, found by rule on predicates whose answer is known."""

import pytest

from opcheck.core.case import Case, Dims
from opcheck.core.finding import Finding
from opcheck.core.policy import Contract
from opcheck.core.shrink import elements, same_failure, shrink, smaller_sizes
from opcheck.core.verdict import Verdict

CONTRACT = Contract(
    name="ops::x", kind="reduction", dtypes=("float32", "float16"), dims=("...", "rows", "cols", "heads", "k"),
    smallest={"cols": 4}, sizes={"heads": (2, 8, 16)}, multiple={"k": 16},
)  # fmt: skip
DTYPES = CONTRACT.dtypes
LARGE = Case(
    op="ops::x", dtype="float16", values="outlier_row", layout="x=padded+w=offset+grad:out=expanded",
    variant='eps=0.5,mode="max",%config=1', grads="x",
    dims=Dims({"...0": 2, "...1": 3, "rows": 37, "cols": 129, "heads": 8, "k": 48}),
)  # fmt: skip


def shrunk(fails, case=LARGE, **more):
    return shrink(case, CONTRACT, DTYPES, fails, **more)


def test_what_always_fails_shrinks_to_the_smallest_legal_case():
    found = shrunk(lambda case: True)
    assert found.case.id == "ops::x[float32;rows=1,cols=4,heads=2,k=16;zeros;;;;0]@cpu"
    assert found.whole


def test_what_fails_in_no_other_case_stays():
    found = shrunk(lambda case: False)
    assert found.case == LARGE
    assert found.tried > 10


@pytest.mark.parametrize("least", [1, 2, 5, 36, 37])
def test_sizes_are_bisected(least):
    assert shrunk(lambda case: case.dims["rows"] >= least).case.dims["rows"] == least


def test_sizes_that_depend_on_each_other_shrink_as_far_as_they_can():
    found = shrunk(lambda case: case.dims["rows"] * case.dims["cols"] >= 64).case
    assert found.dims["rows"] * found.dims["cols"] >= 64
    assert (found.dims["rows"] - 1) * found.dims["cols"] < 64
    assert found.dims["rows"] * (found.dims["cols"] - 1) < 64


def test_the_contract_says_which_sizes_there_are():
    assert list(smaller_sizes(CONTRACT, "heads", 16)) == [2, 8]
    assert list(smaller_sizes(CONTRACT, "k", 48)) == [16, 32]
    assert list(smaller_sizes(CONTRACT, "cols", 7)) == [4, 5, 6]
    assert list(smaller_sizes(CONTRACT, "rows", 1)) == []
    assert list(smaller_sizes(CONTRACT, "rows", 0)) == []


def test_an_empty_dimension_stays_empty():
    empty = Case(op="ops::x", dtype="float32", dims=Dims(rows=5, cols=0))
    assert shrunk(lambda case: case.dims["cols"] == 0, empty).case.dims == {"rows": 1, "cols": 0}


def test_only_the_layout_that_matters_is_kept():
    assert shrunk(lambda case: case.layouts.get("w") == "offset").case.layout == "w=offset"


def test_two_layouts_that_only_fail_together_are_kept():
    found = shrunk(lambda case: "x=padded" in case.layout and "grad:out=expanded" in case.layout)
    assert found.case.layout == "x=padded+grad:out=expanded"


@pytest.mark.parametrize("kept", ["eps=0.5", 'mode="max"', "%config=1"])
def test_only_the_argument_that_matters_is_kept(kept):
    assert shrunk(lambda case: kept in case.variant).case.variant == kept


def test_gradients_values_and_element_type():
    assert shrunk(lambda case: case.grads == "x").case.grads == "x"
    assert shrunk(lambda case: case.values != "zeros").case.values == "small_integers"
    assert shrunk(lambda case: case.values not in ("zeros", "small_integers")).case.values == "normal"
    assert shrunk(lambda case: case.values == "outlier_row").case.values == "outlier_row"
    assert shrunk(lambda case: case.dtype == "float16").case.dtype == "float16"


def test_leading_dimensions_that_matter_are_numbered_anew():
    assert dict(shrunk(lambda case: 3 in case.dims.leading).case.dims)["...0"] == 3
    assert shrunk(lambda case: 3 in case.dims.leading).case.dims.leading == (3,)


def test_a_size_that_only_other_values_allow_is_found_in_the_next_round():
    def fails(case):
        return case.dims["rows"] >= (5 if case.values == "normal" else 30) or case.values == "never"

    assert shrunk(lambda case: fails(case) and case.values not in ("zeros", "small_integers")).case.dims["rows"] == 5


def test_no_case_runs_twice_and_every_search_is_the_same():
    asked = []

    def fails(case):
        asked.append(case.id)
        return case.dims["cols"] >= 65 and case.layouts.get("x") == "padded"

    first = shrunk(fails)
    once = list(asked)
    assert len(once) == len(set(once)) == first.tried
    asked.clear()
    assert shrunk(fails) == first
    assert asked == once


def test_without_time_the_smallest_until_then_is_kept():
    calls = iter([False, False, True])
    found = shrunk(lambda case: case.dims["rows"] >= 2, late=lambda: next(calls))
    assert not found.whole
    assert found.tried == 2
    assert elements(found.case) <= elements(LARGE)


def finding(check, detail, tensor="out", verdict=Verdict.FAIL, looks_like=""):
    return Finding(check=check, tensor=tensor, verdict=verdict, law="", detail=detail, looks_like=looks_like)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (finding("numerics", "measured 3, allowed 1"), finding("numerics", "measured 9e9, allowed 2"), True),
        (finding("numerics", "measured 3"), finding("numerics", "measured 3", tensor="grad x"), False),
        (finding("numerics", "measured 3"), finding("slices", "measured 3"), False),
        (finding("numerics", "measured 3"), finding("numerics", "measured 3", verdict=Verdict.INCONCLUSIVE), False),
        (finding("structure", "NaN missing: 3 of 5"), finding("structure", "NaN missing: 1 of 1"), True),
        (finding("structure", "NaN missing: 3 of 5"), finding("structure", "Inf missing: 3 of 5"), False),
        (finding("structure", "NaN missing: 3 of 5"), finding("structure", "shape [3] should be [5]"), False),
        (
            finding("structure", "target was killed by SIGSEGV at k.py:9"),
            finding("structure", "target raised ValueError in its forward at k.py:7: n is 1, it should be 2"),
            False,
        ),
        (
            finding("structure", "target raised ValueError in its forward at k.py:7: n is 129, it should be 8"),
            finding("structure", "target raised ValueError in its forward at k.py:7: n is 1, it should be 8"),
            True,
        ),
        (
            finding("structure", "target raised ValueError in its forward at k.py:7: n is 129"),
            finding("structure", "target raised ValueError in its forward at k.py:8: n is 129"),
            False,
        ),
        (
            finding("memory", "_k, k.py:9: program [0] loads", looks_like="a mask that is one short"),
            finding("memory", "_k, k.py:9: program [7] loads", looks_like="a race"),
            False,
        ),
    ],
)
def test_one_bug_or_two(one, other, alike):
    assert same_failure(one, other) is alike
    assert same_failure(other, one) is alike
