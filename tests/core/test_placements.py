"""Layouts: each that fits each tensor, none that does not; and what a contract forbids."""

from dataclasses import replace

import pytest

from opcheck.core import factors
from opcheck.core.case import Case, Dims
from opcheck.core.cases import plan_cases
from opcheck.core.facts import Facts, Input, Output, facts_from
from opcheck.core.layouts import layouts_of
from opcheck.core.outside import outside
from opcheck.core.placements import channels_last, placed, strided
from opcheck.core.policy import Contract, Unsupported
from opcheck.core.report import to_json

X = Input(kind="float", rank=2, dims=("...", "rows", "cols"), floating=True)
WEIGHT = Input(kind="float", rank=1, dims=("cols",), floating=True)
INDEX = Input(kind="integer", rank=1, dims=("rows",))
FACTS = Facts(inputs={"x": X, "weight": WEIGHT, "index": INDEX}, outputs={"out": Output(rank=2)})
NORM = Contract(
    name="ops::norm", kind="normalization", dtypes=("float32", "bfloat16"), dims=("...", "rows", "cols"),
    reduces=("cols",), empty=("rows",), unsupported=(Unsupported(dtype="float64", reason="sums are float32"),),
)  # fmt: skip

MATRIX = {"transposed", "padded", "offset", "narrowed", "expanded"}
VECTOR = {"padded", "offset", "expanded"}
CONSTANT = {"ones", "zero"}


def by_tensor(texts):
    found = {}
    for text in texts:
        for tensor, layout in layouts_of(text).items():
            found.setdefault(tensor, set()).add(layout)
    return found


def test_each_tensor_has_each_layout_that_fits_it():
    texts = placed(NORM, FACTS, "standard")
    assert texts[0] == ""
    assert by_tensor(texts) == {"x": MATRIX, "weight": VECTOR, "index": VECTOR, "grad:out": MATRIX | CONSTANT}
    assert len(texts) == 1 + len(MATRIX | CONSTANT)


def test_what_may_be_legal_only_as_drawn_keeps_its_values():
    for kind in ("offsets", "other"):
        facts = replace(FACTS, inputs={"x": X, "starts": Input(kind=kind, rank=1)})
        assert by_tensor(placed(NORM, facts, "standard"))["starts"] == VECTOR - {"expanded"}


def test_two_tensors_of_one_shape_do_not_go_through_the_layouts_in_step():
    twice = replace(FACTS, inputs={"a": X, "b": X})
    tables = [layouts_of(text) for text in placed(NORM, twice, "standard")[1:]]
    assert all(table["a"] != table["b"] for table in tables)


def test_quick_has_the_two_that_find_most():
    tables = [layouts_of(text) for text in placed(NORM, FACTS, "quick")]
    assert [table.get("x") for table in tables] == [None, "transposed", "padded"]
    assert [table.get("grad:out") for table in tables] == [None, "expanded", "narrowed"]


def test_what_is_written_to_is_never_expanded_and_has_no_upstream_gradient():
    in_place = Facts(inputs={"x": X, "weight": WEIGHT}, outputs={"x": Output(rank=2, differentiable=False)})
    assert by_tensor(placed(NORM, in_place, "standard")) == {"x": MATRIX - {"expanded"}, "weight": VECTOR}


def test_nothing_is_laid_out_where_nothing_is_known():
    assert placed(NORM, Facts(), "full") == ("",)
    assert channels_last(NORM, Facts()) is None


def test_a_contiguous_input_is_strided_only_to_be_refused():
    contract = replace(NORM, contiguous={"x": "why", "weight": "why"})
    assert by_tensor(placed(contract, FACTS, "standard"))["x"] == {"offset"}
    assert list(strided(contract, FACTS, "standard")) == ["x=transposed", "x=padded", "weight=expanded"]
    for text in strided(contract, FACTS, "standard"):
        case = Case(op=contract.name, dtype="float32", dims=Dims(rows=5, cols=129), layout=text)
        assert "declared contiguous: why" in outside(contract, case)
        assert outside(NORM, case) == ""


def test_channels_last_needs_leading_dimensions():
    dims, text = channels_last(NORM, FACTS)
    assert dims == Dims({"...0": 2, "...1": 3, "rows": 5, "cols": 129})
    assert layouts_of(text) == {"x": "channels_last", "grad:out": "channels_last"}
    assert channels_last(replace(NORM, dims=("rows", "cols")), FACTS) is None


def test_each_of_several_outputs_is_used_alone():
    two = replace(
        FACTS, outputs={"out 0": Output(rank=2), "out 1": Output(rank=1), "out 2": Output(rank=1, differentiable=False)}
    )
    assert factors.grads(NORM, two, "quick") == ("", ">out 0", ">out 1")
    assert factors.grads(NORM, FACTS, "quick") == ("",)


@pytest.mark.parametrize("level", ["quick", "standard", "full"])
def test_empties_and_unsupported_types_are_planned(level):
    cases = [item.case for item in plan_cases(NORM, level=level, backend="cpu", facts=FACTS).cases]
    why = {case.id: outside(NORM, case) for case in cases}
    assert [case.id for case in cases if case.dims["rows"] == 0 and not why[case.id]]
    assert [text for text in why.values() if text.startswith("cols is empty")]
    assert [text for text in why.values() if text.startswith("float64 is declared unsupported: sums are float32")]


def test_a_leading_dimension_of_none_is_outside_unless_declared():
    case = Case(op="ops::norm", dtype="float32", dims=Dims({"...0": 0, "rows": 3, "cols": 4}))
    assert outside(NORM, case).startswith("...0 is empty")
    assert outside(replace(NORM, empty=("...",)), case) == ""


def test_facts_come_back_from_json():
    assert facts_from(to_json(FACTS)) == FACTS


def far_cases(facts, level="standard", contract=NORM, backend="cpu"):
    plan = plan_cases(contract, level=level, backend=backend, facts=facts)
    return [item.case for item in plan.cases if "=far" in item.case.layout], plan.not_covered


def test_one_case_has_every_tensor_of_two_dimensions_far():
    (case,), missing = far_cases(FACTS)
    assert case.layout == "x=far+grad:out=far"
    assert (case.dtype, case.dims) == ("float32", Dims(rows=5, cols=129))
    assert not any("2^31" in text for text in missing)
    assert far_cases(FACTS, "quick")[0] == []


def test_what_is_declared_contiguous_is_not_far():
    contract = replace(NORM, contiguous={"x": "rows are read as one stretch"})
    assert [case.layout for case in far_cases(FACTS, contract=contract)[0]] == ["grad:out=far"]
    assert outside(contract, Case(op=NORM.name, dtype="float32", dims=Dims(rows=5, cols=129), layout="x=far"))


def test_where_it_cannot_be_it_is_not_covered():
    cases, missing = far_cases(replace(FACTS, no_far="on a GPU they would take real memory"))
    assert cases == []
    assert "offsets of more than 2^31 elements: on a GPU they would take real memory" in missing
    vectors = replace(FACTS, inputs={"weight": WEIGHT}, outputs={}, no_far="no room")
    assert not any("2^31" in text for text in far_cases(vectors)[1])
