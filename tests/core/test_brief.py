"""A shortened report must print as the whole one does, and come back from JSON as it went."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opcheck.core.brief import brief
from opcheck.core.report import AuditReport, Coverage, Share, op_from, to_json
from opcheck.render import text
from tests.core import reports
from tests.core.reports import PASS, case, failing, finding, passing, row

errors = st.sampled_from([0.0, 1e-5, 2e-4, 1e-2])
rows = st.builds(
    row, st.sampled_from(["out", "grad x"]), reports.verdicts, target=errors, reference=errors, scale=errors,
    dtype=st.sampled_from(["float32", "float16"]), gate_valid=st.booleans(), decoy_distance=errors,
)  # fmt: skip
findings = st.builds(
    finding, st.sampled_from(["out", "grad x"]), reports.verdicts, check=st.sampled_from(["numerics", "library"]),
    looks_like=st.sampled_from(["", "a tail"]), waived=st.sampled_from(["", "known"]), detail=st.sampled_from("ab"),
)  # fmt: skip
cases = st.builds(
    case, st.just("ops::any"), reports.verdicts, values=st.sampled_from(["normal", "zeros"]),
    size=st.sampled_from(["rows=5,cols=129", "rows=1,cols=1"]),
    tensors=st.lists(rows, max_size=4).map(tuple), findings=st.lists(findings, max_size=4).map(tuple),
)  # fmt: skip
shares = st.builds(Share, covered=st.integers(0, 9), possible=st.integers(0, 9))
coverages = st.builds(Coverage, pairs=st.dictionaries(st.sampled_from(["dtype x values", "dtype x grads"]), shares))


@st.composite
def ops(draw):
    several = draw(st.lists(cases, max_size=5))
    numbered = tuple(replace(item, id=item.id.replace(";0]", f";{at}]")) for at, item in enumerate(several))
    return replace(passing(), verdict=draw(reports.verdicts), cases=numbered, coverage=draw(coverages))


def printed(op, verbosity):
    return text.render(AuditReport(ops=(op,), verdict=op.verdict, exit_status=0), verbosity=verbosity)


@settings(deadline=None, max_examples=60)
@given(ops(), st.sampled_from([-1, 0, 1]))
def test_it_prints_as_the_whole_does(op, verbosity):
    assert printed(op_from(json.loads(json.dumps(to_json(brief(op))))), verbosity) == printed(op, verbosity)


@settings(deadline=None, max_examples=60)
@given(reports.ops)
def test_json_and_back(op):
    assert to_json(op_from(json.loads(json.dumps(to_json(op))))) == to_json(op)


@pytest.mark.parametrize("op", [passing(), failing()], ids=["passing", "failing"])
def test_what_comes_back_is_of_the_same_types(op):
    back = op_from(to_json(op))
    assert repr(back.cases) == repr(op.cases)
    assert (back.verdict, back.limitations, back.not_covered) == (op.verdict, op.limitations, op.not_covered)


def test_it_is_short():
    many = tuple(
        case("ops::rms_norm", PASS, values=f"family_{at}", tensors=(row("out"),), findings=(finding(),) * 9)
        for at in range(50)
    )
    op = brief(replace(passing(), cases=many))
    assert sum(len(item.tensors) for item in op.cases) == 1
    assert not any(item.findings for item in op.cases)
    assert [item.id for item in op.cases] == [item.id for item in many]
