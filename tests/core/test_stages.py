"""The five stages are read off the findings: nothing counts as held because it was not tried."""

import pytest

from opcheck.core.finding import Finding
from opcheck.core.policy import Contract
from opcheck.core.report import STAGES, CaseReport, OpReport, verdict_of
from opcheck.core.stages import stages
from opcheck.core.verdict import Verdict

PASS, LIMITED, INCONCLUSIVE, FAIL = Verdict
CONTRACT = Contract(name="ops::p", kind="normalization", dtypes=("float32", "bfloat16"), dims=("rows", "cols"))


def case(dtype="float32", values="normal", rows=3, waived="", **verdicts):
    found = tuple(
        Finding(check=check, tensor="out", verdict=verdict, law="It holds.", waived=waived)
        for check, verdict in ({"numerics": PASS} | verdicts).items()
    )
    return CaseReport(
        id=f"ops::p[{dtype};rows={rows},cols=129;{values};;;;0]@cpu", verdict=verdict_of(found), findings=found
    )


ALL = (
    case(determinism=PASS, stress=PASS), case(values="zeros"), case(rows=1),
    case(dtype="bfloat16", determinism=PASS),
)  # fmt: skip


def test_all_hold_where_all_was_tried():
    found = stages(CONTRACT, ALL)
    assert found == dict.fromkeys(STAGES, "holds")
    assert OpReport(op="ops::p", verdict=PASS, backend="cpu", stages=found).production_ready


@pytest.mark.parametrize(("extra", "changed"), [
    (case(numerics=FAIL), {"basic correctness": "fails", "dtype sensitivity": "fails"}),
    (case(dtype="bfloat16", numerics=FAIL), {"dtype sensitivity": "fails"}),
    (case(values="one_nan", numerics=FAIL), {"dtype sensitivity": "fails", "edge cases": "fails"}),
    (case(rows=0, numerics=INCONCLUSIVE), {
        "basic correctness": "inconclusive", "dtype sensitivity": "inconclusive", "edge cases": "inconclusive",
    }),
    (case(determinism=FAIL), {"determinism": "fails"}),
    (case(stress=FAIL, dtype="bfloat16"), {"stress": "fails", "dtype sensitivity": "fails"}),
    (case(composition=FAIL, dtype="bfloat16"), {"stress": "fails", "dtype sensitivity": "fails"}),
    (case(numerics=LIMITED), {}),
])  # fmt: skip
def test_each_stage_fails_on_its_own_evidence(extra, changed):
    found = stages(CONTRACT, (*ALL, extra))
    assert found == dict.fromkeys(STAGES, "holds") | changed
    assert OpReport(op="ops::p", verdict=PASS, backend="cpu", stages=found).production_ready == (not changed)


@pytest.mark.parametrize(("cases", "missing"), [
    ((), set(STAGES)),
    (ALL[1:], {"stress"}),
    ((case(dtype="bfloat16"),), {"basic correctness", "dtype sensitivity", "edge cases", "determinism", "stress"}),
    ((case(determinism=PASS),), {"dtype sensitivity", "edge cases", "stress"}),
])  # fmt: skip
def test_what_was_not_tried_is_not_covered(cases, missing):
    found = stages(CONTRACT, cases)
    assert {name for name, state in found.items() if state == "not covered"} == missing
    assert not OpReport(op="ops::p", verdict=PASS, backend="cpu", stages=found).production_ready


@pytest.mark.parametrize(("verdict", "state"), [(PASS, "holds"), (LIMITED, "holds"), (FAIL, "fails")])
def test_an_op_that_draws_is_deterministic_where_its_seeds_decide(verdict, state):
    assert stages(CONTRACT, [case(randomness=verdict)])["determinism"] == state


def test_a_mixed_case_counts_for_each_of_its_dtypes():
    assert stages(CONTRACT, [case(dtype="x=bfloat16,weight=float32")])["dtype sensitivity"] == "holds"


def test_what_is_waived_does_not_hold_by_itself():
    assert stages(CONTRACT, [case(numerics=FAIL, waived="known")])["basic correctness"] == "inconclusive"
