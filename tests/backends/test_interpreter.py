"""The repaired interpreter, tested in processes that have TRITON_INTERPRET=1 from their start."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from opcheck.backends.interpreter import tables_source
from opcheck.backends.interpreter.repair import _install

ROOT = Path(__file__).resolve().parents[2]
SUITE = Path(__file__).parent / "interpreted"
FILES = (
    *("numerics", "reductions", "launches", "recording", "observing", "covering", "own_ops", "own_rows"),
    *("wrapping", "sampled", "tuned"),
)


def names():
    for file in FILES:
        for node in ast.parse((SUITE / f"{file}.py").read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{file}.{node.name}"


def run(*command, interpret="1"):
    environment = {**os.environ, "TRITON_INTERPRET": interpret, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTEST_ADDOPTS", None)
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """Run the suite once; returns for each test the texts of its failures, parameters together."""
    report = tmp_path_factory.mktemp("interpreted") / "report.xml"
    files = [str(SUITE / f"{file}.py") for file in FILES]
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *files)
    results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        key = f"{case.get('classname').rpartition('.')[2]}.{case.get('name').partition('[')[0]}"
        failed = [f"{case.get('name')}: {child.text}" for child in case if child.tag in ("failure", "error", "skipped")]
        results.setdefault(key, []).extend(failed)
    assert results, done.stdout + done.stderr
    return results


@pytest.mark.parametrize("name", list(names()))
def test_interpreted(interpreted, name):
    assert interpreted[name] == []


def test_the_plain_interpreter_fails_what_the_repair_is_for():
    done = run("-m", "tests.backends.interpreted.plain")
    assert done.returncode == 0, done.stderr
    passed = json.loads(done.stdout.splitlines()[-1])
    wrong = {
        *("bfloat16.from_float32", "bfloat16.add", "bfloat16.mul", "bfloat16.sum", "bfloat16.dot", "bfloat16.select"),
        *("bfloat16.atomic_add", "float8_e4m3fn.from_float32", "float8_e5m2.from_float32"),
        *("float32.dot_tf32", "float32.libdevice.tanh", "float32.libdevice.erf"),
    }
    assert {name for name in wrong if passed[name]} == set()
    right = {"float16.from_float32", "float16.add", "float32.mul", "float32.exp", "int32.mul", "float16.masked_load"}
    assert {name for name in right if not passed[name]} == set()


def test_compiled_kernels_are_left_alone():
    script = "from opcheck.backends.interpreter import *; r = install(); print(r.active, r.reason, trusted('bfloat16'))"
    done = run("-c", script, interpret="0")
    assert done.stdout.startswith("False TRITON_INTERPRET was not 1")
    assert "bfloat16 is wrong in Triton's plain interpreter" in done.stdout


def test_without_triton_there_is_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    answer = _install()
    assert not answer.active
    assert answer.triton == ""
    assert "triton" in answer.reason


def test_the_tables_come_from_the_generator(tmp_path):
    if tables_source() != "model":
        pytest.skip("the stored tables were measured on a GPU")
    done = run("benchmarks/interpreter_tables.py", "--source", "model", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout
    stored = ROOT / "opcheck" / "backends" / "interpreter" / "tables" / "probes.json"
    fresh, kept = (json.loads(path.read_text()) for path in (tmp_path / "probes.json", stored))
    assert fresh["probes"] == kept["probes"]
    assert fresh["inputs"] == kept["inputs"]
