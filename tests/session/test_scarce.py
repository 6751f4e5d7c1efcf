"""A case that memory ran short in beside other workers is judged again, alone, and what it then lacks is reported."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from opcheck.core.gate import MACHINE
from opcheck.core.report import AuditReport, CaseReport
from opcheck.core.verdict import Verdict
from opcheck.session import Options, Session

from .scarce import OPS, calls, case, write

CASES = (*(case(op, 7 if op == "ours" else 4) for op in OPS), case("once", 5), case("dies", 5))


@dataclass
class Told:
    """Keep what a session tells, and press Ctrl-C after a number of cases."""

    interrupt: int = 0
    finished_ids: list[str] = field(default_factory=list)

    def planned(self, total: int) -> None:
        self.total = total

    def finished(self, done: CaseReport) -> None:
        self.finished_ids.append(done.id)
        if len(self.finished_ids) == self.interrupt:
            raise KeyboardInterrupt

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One audit of the ops: its report, what was told meanwhile, and the calls of the ops."""

    report: AuditReport
    told: Told
    calls: dict[str, list[int]]

    @property
    def cases(self) -> dict[str, CaseReport]:
        return {item.id: item for op in self.report.ops for item in op.cases}

    def said(self, name: str) -> str:
        """The verdict of a case and its findings that are no PASS, in words."""
        found = self.cases[name]
        worse = (item for item in found.findings if item.verdict is not Verdict.PASS)
        return f"{found.verdict} {' '.join(f'{item.check}: {item.detail}' for item in worse)}"


def run(tmp, *, interrupt: int = 0, **settings) -> Audited:
    registry, told = write(tmp), Told(interrupt=interrupt)
    chosen = {"cases": CASES, "checks": ("structure", "numerics"), **settings}
    with Session.open(Options(registry=registry, backend="cpu", plugins=False, **chosen)) as session:
        report = session.audit(told)
    return Audited(report=report, told=told, calls=calls(tmp))


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    return tmp_path_factory.mktemp("evidence") / "cpu.jsonl"


@pytest.fixture(scope="module")
def beside(tmp_path_factory, evidence):
    return run(tmp_path_factory.mktemp("beside"), workers=2, evidence=evidence)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return run(tmp_path_factory.mktemp("alone"), workers=1)


def test_every_case_is_reported_once(beside):
    assert sorted(beside.told.finished_ids) == sorted(CASES)
    assert beside.told.total == len(CASES)
    assert len(beside.cases) == sum(len(op.cases) for op in beside.report.ops) == len(CASES)
    assert beside.report.complete


@pytest.mark.parametrize("op", ["once", "backward", "samples"])
def test_what_other_workers_took_is_not_held_against_the_op(beside, op):
    assert beside.said(case(op)) == "PASS "
    assert len(beside.calls[op]) > 1


def test_who_is_judged_again_is_alone_and_last(beside):
    short = ("once", "backward", "samples", "always", "reference", "dies")
    again = {*map(case, short), case("ours", 7), case("dies", 5)}
    assert set(beside.told.finished_ids[-len(again) :]) == again
    for name in ("once", "always", "reference", "ours", "dies", "dies_after"):
        assert len(beside.calls[name]) == 2, name
        assert beside.calls[name][1] == 1, name
    assert max(workers for found in beside.calls.values() for workers in found) == 2


def test_what_did_not_lack_memory_is_judged_once(beside, alone):
    assert beside.said(case("wrong")).startswith("FAIL numerics")
    assert len(beside.calls["wrong"]) == len(alone.calls["wrong"])
    assert beside.said(case("once", 5)) == "PASS "


def test_a_target_that_lacks_memory_alone_fails(beside, alone):
    for audited in (beside, alone):
        assert audited.said(case("always")).startswith("FAIL structure: target raised RuntimeError in its forward")
        assert "can't allocate memory" in audited.said(case("always"))


def test_a_reference_that_lacks_memory_alone_is_to_be_mended(beside, alone):
    for audited in (beside, alone):
        assert audited.said(case("reference")).startswith(
            "INCONCLUSIVE structure: reference raised OutOfMemoryError in its forward"
        )


def test_what_opcheck_lacks_alone_is_the_machines(beside, alone):
    for audited in (beside, alone):
        said = audited.said(case("ours", 7))
        assert said.startswith(f"INCONCLUSIVE {MACHINE}: there is not the memory to judge it, with no other worker")


def test_a_death_in_the_second_look_costs_its_own_case_only(beside):
    assert beside.said(case("dies")).startswith("FAIL structure: target exited with status 3")
    assert beside.said(case("dies", 5)) == "PASS "


def test_one_worker_is_alone_already(alone):
    counted = ("once", "backward", "always", "reference", "samples", "ours", "dies", "dies_after")
    assert [alone.calls[name] for name in counted] == [[1]] * len(counted)
    for name in ("once", "backward", "dies"):
        assert "target raised OutOfMemoryError" in alone.said(case(name))
        assert alone.said(case(name)).startswith("FAIL")
    assert sorted(alone.told.finished_ids) == sorted(CASES)


def test_an_op_is_recorded_once_all_its_cases_are_there(beside, evidence):
    lines = [line for line in map(json.loads, evidence.read_text().splitlines()) if line.get("op") == "scarce::once"]
    assert [(sorted(line["case_ids"]), line["verdict"]) for line in lines] == [
        (sorted((case("once"), case("once", 5))), "PASS")
    ]


def test_what_did_not_get_its_second_look_did_not_run(tmp_path):
    chosen = (case("once"), case("once", 5), case("always"))
    audited = run(tmp_path, workers=2, cases=chosen, interrupt=1)
    assert list(audited.cases) == [case("once", 5)]
    assert not audited.report.complete
    assert [op.not_covered for op in audited.report.ops] == [("1 planned cases did not run",)] * 2
    assert len(audited.calls["once"]) == 1
