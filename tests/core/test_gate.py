"""May it ship? Exit statuses and waivers, each both ways."""

import datetime
from dataclasses import replace

import pytest

from opcheck.core.finding import Finding
from opcheck.core.gate import ExitStatus, apply_waivers, gate, waiver_problems
from opcheck.core.policy import GatePolicy, Waiver
from opcheck.core.report import CaseReport, OpReport, TensorRow
from opcheck.core.verdict import Verdict, worst

PASS, LIMITED, INCONCLUSIVE, FAIL = Verdict
TODAY = datetime.date(2026, 5, 1)
ID = "ops::p[x=float16,weight=float32;rows=3;zeros;x=transposed;eps=1;;0]@cpu"


def finding(verdict, check="numerics", tensor="out"):
    return Finding(check=check, tensor=tensor, verdict=verdict, law="It holds.")


def op(*verdicts, check="numerics"):
    cases = tuple(CaseReport(id=ID, verdict=verdict, findings=(finding(verdict, check),)) for verdict in verdicts)
    return OpReport(op="ops::p", verdict=worst(verdicts), backend="cpu", cases=cases)


def test_the_statuses_are_pytests():
    assert [(item.name, int(item)) for item in ExitStatus] == [
        ("OK", 0), ("CLOSED", 1), ("INTERRUPTED", 2), ("INTERNAL", 3), ("USAGE", 4), ("NOTHING", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(("ops", "settings", "verdict", "status"), [
    ([op(PASS)], {}, PASS, 0),
    ([op(PASS, LIMITED), op(PASS)], {}, LIMITED, 0),
    ([op(PASS), op(FAIL)], {}, FAIL, 1),
    ([op(PASS), op(INCONCLUSIVE)], {}, INCONCLUSIVE, 1),
    ([op(INCONCLUSIVE), op(FAIL)], {}, FAIL, 1),
    ([op(PASS)], {"problems": ["a waiver has expired"]}, PASS, 1),
    ([op(PASS)], {"complete": False}, PASS, 2),
    ([op(FAIL)], {"complete": False, "problems": ["x"]}, FAIL, 2),
    ([op(PASS, INCONCLUSIVE, check="opcheck")], {}, INCONCLUSIVE, 3),
    ([op(PASS, FAIL, check="opcheck")], {"complete": False, "problems": ["x"]}, FAIL, 3),
    ([], {}, INCONCLUSIVE, 5),
    ([op()], {}, INCONCLUSIVE, 5),
    ([], {"problems": ["x"]}, INCONCLUSIVE, 1),
    ([op(), op(PASS)], {}, INCONCLUSIVE, 1),
])  # fmt: skip
def test_exit_status(ops, settings, verdict, status):
    result = gate(ops, GatePolicy(), **settings)
    assert (result.verdict, result.exit_status) == (verdict, status)
    assert result.problems == tuple(settings.get("problems", ()))


def test_the_policy_says_what_may_ship():
    strict, lenient = GatePolicy(accept=frozenset({PASS})), GatePolicy(accept=frozenset(Verdict))
    assert gate([op(LIMITED)], strict).exit_status == 1
    assert gate([op(FAIL)], lenient).exit_status == 0


@pytest.mark.parametrize("empty", [PASS, FAIL])
def test_the_worst_verdict_counts_and_nothing_is_never_a_success(empty):
    assert [item.severity for item in (PASS, LIMITED, INCONCLUSIVE, FAIL)] == [0, 1, 2, 3]
    for one in Verdict:
        for other in Verdict:
            assert worst([one, other]).severity == max(one.severity, other.severity)
    assert worst([]) is INCONCLUSIVE
    assert worst([], empty=empty) is empty


def waiver(op="ops::p", check="numerics", until=TODAY, **where):
    return Waiver(op=op, check=check, reason="known", until=until, where=where)


def row(tensor, verdict):
    return TensorRow(
        tensor=tensor, dtype="float16", reference_error=0.0, target_error=1.0, reference_relative_error=0.0,
        rounding_floor=0.0, threshold=0.5, protocol_threshold=0.5, gate_valid=True, verdict=verdict,
    )  # fmt: skip


CASE = CaseReport(
    id=ID, verdict=FAIL, findings=(finding(FAIL), finding(PASS, tensor="grad x")),
    tensors=(row("out", FAIL), row("grad x", PASS)),
)  # fmt: skip


@pytest.mark.parametrize("given", [
    waiver(), waiver(op="ops::*"), waiver(check="num*"), waiver(dtype="float16"), waiver(dtype="float32"),
    waiver(dtype="x=float16,weight=float32"), waiver(tensor="out"), waiver(values="zeros"), waiver(backend="cpu"),
    waiver(layout="x=transposed"), waiver(variant="eps=1"), waiver(dtype="float16", tensor="out", values="zeros"),
])  # fmt: skip
def test_a_waiver_turns_what_it_covers_into_a_limitation(given):
    used = set()
    got = apply_waivers("ops::p", CASE, [given], TODAY, used)
    assert got.verdict is LIMITED
    assert [item.verdict for item in got.tensors] == [LIMITED, PASS]
    assert [(item.verdict, item.waived) for item in got.findings] == [(FAIL, "known (until 2026-05-01)"), (PASS, "")]
    assert used == {given}
    assert waiver_problems([given], TODAY, used, whole=True) == []


@pytest.mark.parametrize("given", [
    waiver(op="ops::q"), waiver(check="structure"), waiver(dtype="bfloat16"), waiver(tensor="grad x"),
    waiver(values="normal"), waiver(backend="cuda"), waiver(dtype="float16", values="normal"), waiver(colour="red"),
    waiver(until=TODAY - datetime.timedelta(days=1)),
])  # fmt: skip
def test_a_waiver_covers_nothing_else(given):
    used = set()
    assert apply_waivers("ops::p", CASE, [given], TODAY, used) == CASE
    assert used == set()


def test_a_case_is_no_better_than_what_is_not_waived():
    broken = replace(CASE, findings=(*CASE.findings, finding(FAIL, check="determinism")))
    got = apply_waivers("ops::p", broken, [waiver()], TODAY, set())
    assert (got.verdict, got.tensors[0].verdict) == (FAIL, FAIL)


def test_an_expired_or_idle_waiver_is_a_problem():
    old, idle = waiver(until=TODAY - datetime.timedelta(days=1), dtype="float16"), waiver(op="ops::q")
    assert waiver_problems([old, idle], TODAY, set(), whole=True) == [
        "waiver for numerics of ops::p, dtype float16 until 2026-04-30 has expired: "
        "mend the op, or give a new date and reason",
        "waiver for numerics of ops::q until 2026-05-01 covers nothing: delete it",
    ]
    assert len(waiver_problems([old, idle], TODAY, {idle}, whole=True)) == 1
    assert len(waiver_problems([old, idle], TODAY, set(), whole=False)) == 1
