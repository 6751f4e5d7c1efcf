"""The test-bed's cheap half: its script, its tables and its registries; the real run is `make testbed`."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from opcheck.checks import limits_by_check
from opcheck.declared import load

ROOT = Path(__file__).resolve().parent.parent
TESTBED = ROOT / "benchmarks" / "testbed"
REPROS = TESTBED / "repros"


@pytest.fixture(scope="module")
def run():
    """The script, as a module."""
    sys.path.insert(0, str(TESTBED))
    try:
        import run

        yield run
    finally:
        sys.path.remove(str(TESTBED))


def finding(check, verdict, tensor="out", waived="", detail="measured 1"):
    return {"check": check, "verdict": verdict, "tensor": tensor, "waived": waived, "detail": detail}


def op(*findings, name="some::op", problems=()):
    case = {"id": f"{name}[float16;rows=1;normal;x=padded;;;0]@cpu", "seconds": 1.5, "findings": list(findings)}
    return {"op": name, "verdict": "FAIL", "cases": [case], "problems": list(problems)}


def test_every_registry_parses_and_every_known_op_is_in_one(run):
    ops = {}
    for package in run.PACKAGES:
        policy = load(TESTBED / "registries" / f"{package}.toml", limits_by_check())
        assert policy.ops, package
        ops |= policy.ops
    known = run.load_known(TESTBED / "findings.toml")
    assert {item.op for item in known} <= set(ops)
    assert len([name for name in ops if name.startswith("liger::")]) >= 12


def test_each_finding_is_described_and_has_a_repro(run):
    page = (ROOT / "docs" / "findings.md").read_text()
    for entry in tomllib.loads((TESTBED / "findings.toml").read_text())["finding"]:
        section = re.search(rf"^### {entry['id']}: .*?(?=^### |^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert section, f"docs/findings.md does not describe {entry['id']}"
        for name in re.findall(r"repros/(\w+\.py)", section[0]):
            assert (REPROS / name).is_file(), name
    for script in REPROS.glob("[a-z]*.py"):
        assert f"repros/{script.name}" in page, f"docs/findings.md does not name {script.name}"


def test_a_failure_is_known_by_op_check_tensor_case_and_backend(run):
    known = [run.Known(id="X1", op="some::*", check="numerics", tensor="out", where="x=padded", backend="cpu")]
    row = run.row_of(op(finding("numerics", "FAIL"), finding("ulp", "PASS")), "some 1.0", "cpu", known)
    assert (row.known, row.unexplained, row.cases, row.seconds) == (("X1",), (), 1, 1.5)
    for other in ("grad x", "out 1"):
        assert run.row_of(op(finding("numerics", "FAIL", tensor=other)), "some 1.0", "cpu", known).unexplained
    assert run.row_of(op(finding("slices", "FAIL")), "some 1.0", "cpu", known).unexplained
    assert run.row_of(op(finding("numerics", "INCONCLUSIVE"), name="an::op"), "some 1.0", "cpu", known).unexplained
    assert run.row_of(op(finding("numerics", "FAIL")), "some 1.0", "cuda", known).unexplained
    waived = run.row_of(op(finding("intact", "FAIL", waived="on purpose")), "some 1.0", "cpu", known)
    assert (waived.known, waived.unexplained, waived.first) == ((), (), "")
    assert run.row_of(op(problems=("cannot be imported",)), "some 1.0", "cpu", known).unexplained


def test_the_table_names_what_is_not_known_and_counts_it(run):
    progress = run.Progress()
    progress.rows += run.rows_of({"ops": [op(finding("numerics", "FAIL", detail="a" * 200))]}, "some 1.0", "cpu", [])
    progress.problems.append("other: 1.0 is not installed")
    text = run.table(progress)
    assert "| some 1.0  | some::op | FAIL" in text
    assert "not known: some::op[float16" in text
    assert "problem: other: 1.0 is not installed" in text
    assert text.endswith("1 of the ops fail or cannot be judged, 1 of them for reasons not known")


def test_a_package_that_is_not_there_is_said_and_the_rest_is_written(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(run.PACKAGES, "torchnorm", "no-such-distribution-0")
    assert run.main(["--only", "torchnorm", "--out", str(tmp_path)]) == 1
    assert "torchnorm: no-such-distribution-0 is not installed" in capsys.readouterr().out
    assert json.loads((tmp_path / "table.json").read_text())["rows"] == []


def test_the_script_says_how_it_is_called():
    done = subprocess.run(
        [sys.executable, TESTBED / "run.py", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "--backend" in done.stdout
    assert "--only PACKAGE" in done.stdout
