"""What nobody could judge is INCONCLUSIVE, is no check's, and is put to the next audit again."""

import pytest

from opcheck.core.gate import MACHINE, OURS, ExitStatus, gate
from opcheck.core.policy import GatePolicy
from opcheck.core.report import OpReport
from opcheck.core.unjudged import broke, out_of_memory, spoilt
from opcheck.core.verdict import Verdict
from opcheck.session.summing import again

CASE = "t::op[float32;n=3;normal;;;;0]@cuda"
SAID = RuntimeError("CUDA error: misaligned address\nCUDA kernel errors might be reported later " + "x" * 900)


@pytest.mark.parametrize(("made", "check", "status"), [
    (broke, OURS, ExitStatus.INTERNAL),
    (spoilt, MACHINE, ExitStatus.CLOSED),
    (out_of_memory, MACHINE, ExitStatus.CLOSED),
])  # fmt: skip
def test_a_case_that_nobody_could_judge(made, check, status):
    case = made(CASE, SAID)
    (finding,) = case.findings
    op = OpReport(op="t::op", verdict=case.verdict, backend="a device", cases=(case,))
    assert (case.id, case.verdict, finding.check) == (CASE, Verdict.INCONCLUSIVE, check)
    assert gate((op,), GatePolicy()).exit_status is status
    assert again(op, died=False, unlearnt="")


def test_what_a_device_says_is_one_line_and_not_all_of_it():
    (finding,) = spoilt(CASE, SAID).findings
    assert "misaligned address CUDA kernel errors" in finding.detail
    assert len(finding.detail) < 500


def test_who_is_short_of_memory_was_alone():
    (finding,) = out_of_memory(CASE, RuntimeError("CUDA out of memory")).findings
    assert "with no other worker beside it" in finding.detail
    assert finding.detail.endswith(": CUDA out of memory")
