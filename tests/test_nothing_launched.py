"""An op that launches nothing of its own has that among its limitations, once, and not where one case launches."""

import pytest

from opcheck.core.case import Case, Dims
from opcheck.core.cases import Plan, Planned
from opcheck.core.finding import Finding
from opcheck.core.memory import ATEN_ONLY, NO_LAUNCH
from opcheck.core.policy import Contract
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict
from opcheck.session.reporting import op_report

CONTRACT = Contract(name="t::op", kind="elementwise", dtypes=("float32",), dims=("n",))
CASES = tuple(Case(op="t::op", dtype="float32", dims=Dims(n=size)) for size in (1, 5))


def limitations(*details):
    reports = [
        CaseReport(
            id=case.id, verdict=Verdict.PASS,
            findings=(Finding(check="memory", tensor="the case", verdict=Verdict.PASS, law="It holds.", detail=text),),
        )
        for case, text in zip(CASES, details, strict=True)
    ]  # fmt: skip
    plan = Plan(cases=tuple(Planned(case=case) for case in CASES))
    about = {"promoted": False, "place": "op.py:3", "not_covered": []}
    return op_report(CONTRACT, plan, reports, about=about, device="a device", whole=False).limitations


@pytest.mark.parametrize("nothing", [NO_LAUNCH, ATEN_ONLY])
def test_nothing_in_any_case(nothing):
    assert limitations(nothing, f"{nothing}; the memory around 2 tensors") == (f"memory: {nothing}, in any case",)


@pytest.mark.parametrize("nothing", [NO_LAUNCH, ATEN_ONLY])
def test_something_in_one_case(nothing):
    assert limitations(nothing, "launches of k [1, 1, 1] x 1; the memory around 2 tensors") == ()
