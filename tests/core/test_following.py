"""What a report says is to be run next."""

from dataclasses import replace

import pytest

from opcheck.core.finding import Finding
from opcheck.core.following import following
from opcheck.core.report import AuditReport, CaseReport, OpReport
from opcheck.core.verdict import Verdict


def case(dims, *findings):
    return CaseReport(id=f"ops::f[float32;{dims};normal;;;;0]@cpu", verdict=Verdict.FAIL, findings=findings)


def finding(verdict, check="numerics", looks_like="", waived=""):
    return Finding(check=check, tensor="out", verdict=verdict, law="It holds.", detail="", looks_like=looks_like,
                   waived=waived)  # fmt: skip


def report(*cases, verdict=Verdict.PASS, status=0, **settings):
    op = OpReport(op="ops::f", verdict=verdict, backend="cpu", cases=cases)
    return AuditReport(ops=(op,), verdict=verdict, exit_status=status, **settings)


PASS, FAIL, UNSURE = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE
AGAIN = "python -m opcheck audit --backend cpu{} --case 'ops::f[float32;{};normal;;;;0]@cpu'"


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ([case("n=99", finding(FAIL)), case("n=64", finding(FAIL))], AGAIN.format("", "n=64")),
        ([case("n=99", finding(FAIL)), case("n=64", finding(UNSURE))], AGAIN.format("", "n=99")),
        ([case("n=99", finding(FAIL, looks_like="x")), case("n=64", finding(FAIL))], AGAIN.format("", "n=99")),
        ([case("n=99", finding(FAIL)), case("n=1", finding(FAIL))], AGAIN.format("", "n=99")),
        ([case("n=9", finding(FAIL, waived="known")), case("n=99", finding(FAIL))], AGAIN.format("", "n=99")),
        ([case("n=9", finding(FAIL, check="compile"))], AGAIN.format(" --check compile", "n=9")),
    ],
)
def test_the_worst_failing_case_is_run_again(cases, says):
    found = following(report(*cases, verdict=FAIL, status=1))
    assert found.next == says
    assert found.ops[0].next == says


@pytest.mark.parametrize(
    ("given", "whole", "says"),
    [
        (report(case("n=9", finding(PASS))), True, "python -m opcheck gate"),
        (report(case("n=9", finding(PASS))), False, "python -m opcheck audit --all"),
        (report(case("n=9", finding(PASS)), status=2, complete=False), True, "python -m opcheck audit --all"),
        (report(case("n=9", finding(PASS)), status=1, problems=("undeclared",)), True, "python -m opcheck lint"),
        (report(verdict=UNSURE, status=5), True, "python -m opcheck lint"),
        (AuditReport(ops=(), verdict=UNSURE, exit_status=5), True, "python -m opcheck lint"),
    ],
)
def test_else_the_gate_the_rest_or_the_registry(given, whole, says):
    found = following(given, whole=whole)
    assert found.next == says
    assert [op.next for op in found.ops] == [""] * len(found.ops)


def test_the_registry_of_the_command_line_is_named_again():
    found = following(report(case("n=9", finding(FAIL)), verdict=FAIL, status=1), registry="my dir/registry.toml")
    assert " audit --registry 'my dir/registry.toml' --backend cpu" in found.next
    passed = following(replace(found, exit_status=0, ops=()), registry="r.toml")
    assert passed.next == "python -m opcheck gate --registry r.toml"
