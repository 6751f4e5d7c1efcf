"""`audit --coverage` from the command line: what two contracts of one op reach of its kernels, and the gate."""

import json
from types import SimpleNamespace

import pytest

from opcheck.errors import OpcheckError
from opcheck.run.isolate import Message
from opcheck.session import audit
from opcheck.session.described import describe
from opcheck.worker import _describe
from tests.command_line import ROOT, start

COVERED = ROOT / "tests" / "covered"
KERNELS = "tests/covered/ops_covered/kernels.py"


def run(registry, *arguments):
    flags = ("--backend", "cpu", "--level", "quick", "--budget", "0", "-n", "2")
    return start("audit", "--registry", str(COVERED / registry), *flags, *arguments)


@pytest.fixture(scope="module")
def gapped(tmp_path_factory):
    """The audit of a contract that leaves much out: what it printed, and its report."""
    file = tmp_path_factory.mktemp("coverage") / "report.json"
    said = run("registry.toml", "--all", "--coverage", "--format", "table", "--format", f"json={file}")
    return said, json.loads(file.read_text())


def test_what_is_missing_is_in_the_report(gapped):
    kernels = {item["kernel"].rpartition(".")[2]: item for item in gapped[1]["kernels"]}
    scaled, clipped = kernels["scaled"], kernels["clipped"]
    assert (scaled["place"], scaled["ops"]) == (f"{KERNELS}:17", ["covered::scaled"])
    assert (scaled["reached"], scaled["lines"], scaled["specialisations"]) == (7, 8, 1)
    assert scaled["gaps"] == [{"first": 22, "last": 22, "unless": "`if TWICE` (line 21) was never true"}]
    assert [(mask["line"], mask["access"], mask["seen"]) for mask in scaled["masks"]] == [
        (20, "load", ["all on"]),
        (26, "store", ["all on"]),
    ]
    assert (clipped["reached"], clipped["lines"], [gap["first"] for gap in clipped["gaps"]]) == (2, 4, [11])
    idle = {name for name, item in kernels.items() if not item["ops"]}
    assert idle == {"larger", "peak", "guarded", "copied", "forgotten", "parked"}


def test_and_it_is_printed_and_closes_the_gate(gapped):
    said, report = gapped
    assert (said.status, report["exit_status"], report["verdict"]) == (1, 1, "PASS")
    assert f"  scaled  {KERNELS}:17     7/8               22               0/2              20, 26\n" in said.out
    assert "CLOSED  covered::scaled: 9 of 12 (75.0%) of the lines of its kernels were reached, and" in said.out
    assert "CLOSED  covered::scaled: 0 of 2 (0.0%) of the masks of its kernels were partly on, and" in said.out
    assert f"CLOSED  no case launches ops_covered.kernels.larger ({KERNELS}:34), ops_covered.kernels.peak (" in said.out
    assert "parked" not in said.out.partition("CLOSED")[2]


def test_a_contract_with_the_missing_cases_opens_the_gate():
    said = run("whole.toml", "--all", "--coverage", "--format", "json")
    report = json.loads(said.out)
    assert (said.status, report["problems"]) == (0, [])
    assert [(item["kernel"], item["reached"], item["lines"], item["gaps"]) for item in report["kernels"]] == [
        ("ops_covered.kernels.clipped", 4, 4, []),
        ("ops_covered.kernels.scaled", 8, 8, []),
    ]
    assert all("partly on" in mask["seen"] for item in report["kernels"] for mask in item["masks"])
    assert {name for item in report["kernels"] for part in item["differences"] for name in part["specialisations"]} == {
        *("scaled(BLOCK=4, LIMIT=0, TWICE=False)", "scaled(BLOCK=4, LIMIT=0, TWICE=True)"),
        *("BLOCK=4, LIMIT=0, TWICE=False", "BLOCK=4, LIMIT=0, TWICE=True", "BLOCK=4, LIMIT=1, TWICE=False"),
    }


def test_without_the_flag_nothing_is_recorded_and_no_minimum_is_held():
    said = run("registry.toml", "--all", "--format", "json")
    assert said.status == 0
    assert "kernels" not in json.loads(said.out)


def test_on_a_gpu_it_is_refused():
    said = start("audit", "--registry", str(COVERED / "registry.toml"), "--all", "--coverage", "--backend", "cuda")
    assert (said.status, said.out) == (4, "")
    assert said.err == "opcheck: --coverage records interpreted kernels, and on cuda none is; give --backend cpu\n"


def test_of_chosen_cases_no_minimum_is_asked():
    report = audit(
        registry=COVERED / "registry.toml", backend="cpu", workers=1, coverage=True,
        cases=("covered::scaled[float32;n=4;normal;;twice=true;;0]@cpu",),
    )  # fmt: skip
    assert (report.exit_status, report.problems) == (0, ())
    scaled = next(item for item in report.kernels if item.kernel.endswith("scaled"))
    assert [(gap.first, gap.last, gap.unless) for gap in scaled.gaps] == [
        (24, 25, "`if TWICE` (line 21) was never false")
    ]
    assert [mask.line for mask in scaled.never_partial] == [20, 26]


def test_an_interpreter_that_is_not_repaired_records_nothing():
    """This process does not interpret: what a worker like it says is what the session raises."""
    said = []
    _describe(SimpleNamespace(send=said.append), {"backend": "cpu", "coverage": True}, {}, None)
    assert [*said[0]] == ["no_coverage"]
    pool = SimpleNamespace(run=lambda items: [Message(item_index=0, body=said[0])])
    with pytest.raises(OpcheckError, match="--coverage needs the repaired interpreter: TRITON_INTERPRET was not 1"):
        describe(pool, [])
