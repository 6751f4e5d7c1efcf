"""A worker that has to end does not cost a case; one that dies does."""

import pytest

from opcheck.core.case import Case, Dims
from opcheck.core.cases import Plan, Planned
from opcheck.core.report import CaseReport, to_json
from opcheck.core.verdict import Verdict
from opcheck.run.events import Death, Died, Done, Message
from opcheck.session.handout import run_cases

CASES = tuple(Case(op="t::op", dtype="float32", dims=Dims(n=size)) for size in (1, 2, 3))


class Scripted:
    """A pool whose first worker answers for the first case and ends; the next one answers for what is handed to it."""

    size = 2

    def __init__(self, *said):
        self.said, self.items = said, []

    def run(self, items):
        self.items = list(items)
        yield answered(0, self.items[0]["cases"][0]["id"])
        yield from self.said
        yield Died(item_index=0, death=Death(reason="exited with status 1", log="", timed_out=False))
        yield from (answered(1, entry["id"]) for entry in self.items[1]["cases"])
        yield Done(item_index=1)

    def resubmit(self, item):
        self.items.append(item)
        return 1


class Short:
    """A pool of workers that memory runs short for in every second case, unless they are alone."""

    def __init__(self, size):
        self.size, self.runs = size, []

    def run(self, items):
        self.runs.append([([entry["id"] for entry in item["cases"]], item["alone"]) for item in items])
        for index, item in enumerate(items):
            for at, entry in enumerate(item["cases"]):
                short = at % 2 and not item["alone"]
                yield Message(item_index=index, body={"short": entry["id"]}) if short else answered(index, entry["id"])
            yield Done(item_index=index)

    def dismiss(self):
        self.runs.append("dismissed")


def answered(index, case):
    return Message(item_index=index, body={"case": to_json(CaseReport(id=case, verdict=Verdict.PASS))})


@pytest.mark.parametrize(("said", "verdicts"), [
    ((Message(item_index=0, body={"spoilt": True}),), [Verdict.PASS] * 3),
    ((), [Verdict.PASS, Verdict.FAIL, Verdict.PASS]),
])  # fmt: skip
def test_whose_fault_a_death_is(said, verdicts):
    plans = {"t::op": Plan(cases=tuple(Planned(case=case) for case in CASES))}
    found = [report for _, report in run_cases(Scripted(*said), plans, checks=("structure",), skip=(), timeout=1.0)]
    assert [report.id for report in found] == [case.id for case in CASES]
    assert [report.verdict for report in found] == verdicts


@pytest.mark.parametrize("size", [2, 1])
def test_what_memory_ran_short_for_comes_last_and_alone(size):
    plans = {
        op: Plan(cases=tuple(Planned(case=Case(op=op, dtype="float32", dims=Dims(n=at))) for at in range(3)))
        for op in ("t::one", "t::two")
    }
    ids = {op: [item.case.id for item in plan.cases] for op, plan in plans.items()}
    pool = Short(size)
    found = [report.id for _, report in run_cases(pool, plans, checks=("structure",), skip=(), timeout=1.0)]
    assert sorted(found) == sorted((*ids["t::one"], *ids["t::two"]))
    if size == 1:
        assert pool.runs == [[(ids["t::one"], True), (ids["t::two"], True)]]
        return
    assert found[-2:] == [ids["t::one"][1], ids["t::two"][1]]
    assert pool.runs == [
        [(ids["t::one"], False), (ids["t::two"], False)],
        "dismissed",
        [([ids["t::one"][1]], True)],
        [([ids["t::two"][1]], True)],
    ]
