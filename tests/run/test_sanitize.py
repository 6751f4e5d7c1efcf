"""A case in a process of its own, under a stand-in for compute-sanitizer that prints what the real one is said to."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from opcheck.alone import run
from opcheck.core.case import Case, Dims
from opcheck.core.cases import Planned
from opcheck.core.outcome import Returned
from opcheck.core.policy import Contract
from opcheck.core.sanitizer import MODES, Sanitize, read_log
from opcheck.core.verdict import Verdict
from opcheck.errors import OpcheckError
from opcheck.registry import spec
from opcheck.run.execute import Executor
from opcheck.session import Options, Session, Silent
from opcheck.session.sanitizing import sanitizing, small
from tests.core.test_sanitizer import LOGS

from . import entry_ops as ops

CASE = Case(op="alone::scale", dtype="float32", dims=Dims(n=5))

# It writes the report that stands in FAKE_REPORT, after it has run the program, as the real one does.
STAND_IN = """#!/bin/sh
while [ "$1" != "--" ]; do
    [ "$1" = "--log-file" ] && log=$2
    [ "$1" = "--tool" ] && tool=$2
    shift
done
shift
"$@"
[ "$PYTORCH_NO_CUDA_MEMORY_CACHING" = 1 ] || exit 1
[ -n "$FAKE_REPORT" ] && cp "$FAKE_REPORT" "$log"
exit 0
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Put the stand-in on PATH; returns a function that chooses its report."""
    program = tmp_path / "compute-sanitizer"
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def report(name):
        monkeypatch.setenv("FAKE_REPORT", str(LOGS / f"{name}.txt") if name else "")

    return report


def answer(tool, case=CASE, seconds=120.0):
    trial = Sanitize(tool=tool, seconds=seconds)
    contract = Contract(name=case.op, kind="elementwise", dtypes=("float32",), dims=("n",))
    executor = Executor(spec(case.op), contract, torch.device("cpu"), lambda case, label, role: None)
    outcome = executor.execute(case, (trial,))[trial]
    assert isinstance(outcome, Returned)
    return outcome.evidence


def test_reports_are_read(stand_in):
    stand_in("memcheck")
    found = answer("memcheck")
    reports, errors, _ = read_log((LOGS / "memcheck.txt").read_text())
    assert (found.reports, found.errors, found.problem) == (reports, errors, "")


def test_without_the_tool(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert answer("memcheck").problem == "compute-sanitizer is not on PATH"


def test_a_program_that_dies_says_its_last_words(stand_in):
    stand_in("")
    found = answer("memcheck", replace(CASE, op="alone::exits"))
    assert found.problem.startswith("the process ended with status ")
    assert found.problem.endswith("these are its last words")


def test_a_program_that_is_slow(stand_in):
    stand_in("clean")
    found = answer("memcheck", seconds=0.1)
    assert found.problem == "no answer within 0.1 s; --timeout gives it longer"


def test_a_target_that_raises_under_a_clean_tool(stand_in):
    stand_in("clean")
    found = answer("memcheck", replace(CASE, op="alone::raises"))
    assert [item.kind for item in found.reports] == [f"target raised ArithmeticError in its forward at {ops.PLACE}: no"]
    assert found.errors == 1


def test_a_mode_reports_by_device_assertions():
    (report,) = answer("consan", replace(CASE, op="alone::asserts")).reports
    assert (report.kind, report.where) == ("Buffer being accessed has outstanding writes", "kernel.py:7")


def test_fpsan_needs_two_configurations(monkeypatch):
    one = {"launches": {"k": 1}, "configs": {}, "digests": {"out": "aa"}, "raised": ""}
    monkeypatch.setattr("opcheck.run.sanitize._alone", lambda *given, **settings: (one, "", ""))
    found = answer("fpsan")
    assert found.note == "fpsan compares two configurations of an autotuned kernel, and the op has none"
    assert not found.problem


def test_fpsan_compares_the_bits_of_two_configurations(monkeypatch):
    def alone(given, case, trial, folder, *, config=0):
        digests = {"out": "aa", "grad x": "bb" if equal or not config else "cc"}
        return {"launches": {"k": 1}, "configs": {"k": 3}, "digests": digests, "raised": ""}, "", ""

    monkeypatch.setattr("opcheck.run.sanitize._alone", alone)
    equal = True
    assert answer("fpsan").reports == ()
    equal = False
    (report,) = answer("fpsan").reports
    assert report.kind == "grad x differs in its bits between two configurations of one autotuned kernel"


def test_alone_tells_what_a_run_gave():
    found = run(CASE)
    assert set(found["digests"]) == {"out", "grad x"}
    assert (found["launches"], found["configs"], found["raised"]) == ({}, {}, "")


def test_small_cases_of_plain_values_are_kept():
    large, odd = replace(CASE, dims=Dims(n=1 << 15)), replace(CASE, values="one_nan")
    laid_out = replace(CASE, layout="x=padded")
    cases = tuple(Planned(case=item) for item in (CASE, large, odd, laid_out))
    assert [item.case for item in small(cases)] == [CASE, laid_out]


REGISTRY = """schema = 1
[registry]
modules = ["alone_ops"]
[op."mine::scale"]
kind = "elementwise"
dtypes = ["float32"]
dims = ["n"]
"""


def test_an_audit_puts_the_reports_into_findings(stand_in, tmp_path, monkeypatch):
    """On the CPU, where the command line would refuse it."""
    stand_in("memcheck")
    source = Path(ops.__file__).read_text().replace("alone::", "mine::")
    (tmp_path / "alone_ops.py").write_text(source[: source.index('_declare("exits"')])
    (tmp_path / "registry.toml").write_text(REGISTRY)
    monkeypatch.setattr(
        "opcheck.session.sanitizing", lambda options, backend: replace(options, checks=("sanitize",), level="quick")
    )
    case = "mine::scale[float32;n=5;normal;;;;0]@cpu"
    options = Options(
        registry=tmp_path / "registry.toml", backend="cpu", sanitize=("memcheck",), cases=(case,), workers=1
    )
    with Session.open(options) as session:
        report = session.audit(Silent())
    (found,) = report.ops[0].cases
    assert report.exit_status == 1
    assert {item.check for item in found.findings} == {"sanitize"}
    first = found.findings[0]
    assert (first.verdict, first.tensor, first.detail) == (
        Verdict.FAIL,
        "memcheck",
        "Invalid __global__ write of size 4 bytes in scale_unbounded(const float *, float *, int, int), "
        "/home/me/kernels.cu:10; thread [5, 0, 0] of block [5, 0, 0]; address 0x7f6510c00a14 is out of bounds and is 1 "
        "bytes after the nearest allocation at 0x7f6510c00000 of size 2,580 bytes; 2 such reports",
    )


def test_the_options_of_a_sanitizing_audit(stand_in):
    options = Options(sanitize=("memcheck", "initcheck"), level="full")
    found = sanitizing(options, "cuda")
    assert (found.checks, found.level, found.sanitize) == (("sanitize",), "quick", options.sanitize)
    assert sanitizing(Options(level="full"), "cpu") == Options(level="full")


def test_a_tool_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OpcheckError, match="--sanitize memcheck: compute-sanitizer is not on PATH; it is part of the"):
        sanitizing(Options(sanitize=("memcheck",)), "cuda")


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_that_the_installed_triton_has_not_is_refused(mode, tmp_path, monkeypatch):
    assert sanitizing(Options(sanitize=(mode,)), "cuda").sanitize == (mode,)
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: _Found(str(tmp_path / "triton" / "__init__.py")))
    with pytest.raises(OpcheckError, match=f"--sanitize {mode}: the installed Triton has no .* Triton 3.9 has it"):
        sanitizing(Options(sanitize=(mode,)), "cuda")


class _Found:
    def __init__(self, origin):
        self.origin = origin
