"""Scripts as source: what they do where the run crashes, hangs, does not import, or is mended."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opcheck.commands import repro
from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict
from opcheck.repro.captured import Captured, Stored
from opcheck.repro.script import About, root_of, standalone

MODULE = """
import os
import torch

@torch.library.custom_op("mine::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    {body}
"""
LOST = Finding(check="structure", tensor="the case", verdict=Verdict.FAIL, law="It comes back.", detail="target exited")
WRONG = Finding(check="numerics", tensor="out", verdict=Verdict.FAIL, law="It is near.", detail="measured 1")
X = Stored(variable="x", dtype="torch.float32", size=(2,), stride=(2,), offset=1, values="[nan, 0.5, nan, -inf, nan]")
GOLDEN = Stored(variable="expected", dtype="torch.float64", size=(2,), stride=(1,), values="[1.0, -inf]")


def script(tmp_path, body, finding, *, fatal, bisect):
    """Write a module and the script about it; return the script."""
    if body:
        (tmp_path / "mine.py").write_text(MODULE.format(body=body))
    described = About(
        case=Case(op="mine::double", dtype="float32"), original=Case(op="mine::double", dtype="float32"),
        finding=finding, registry=tmp_path / "registry.toml", fatal=fatal, bisect=bisect, timeout=100.0,
        level="standard", environment="a test",
    )  # fmt: skip
    captured = Captured(question="returns", module="mine", arguments="x", stored=(X,))
    if finding is WRONG:
        captured = replace(
            captured, question="values", stored=(X, GOLDEN), form=("torch.float32", "(2,)"), allowed="1e-06"
        )
    file = tmp_path / ".opcheck" / "repro" / "it.py"
    file.parent.mkdir(parents=True)
    file.write_text(standalone(captured, described, file, repaired=False, why=""))
    return file


def status(file):
    return subprocess.run([sys.executable, str(file)], capture_output=True, timeout=200, check=False).returncode


@pytest.mark.parametrize(
    ("body", "finding", "fatal", "bisect", "expected"),
    [
        ("os.abort()", LOST, True, False, 1),
        ("return 2 * x", LOST, True, False, 0),
        ("os.abort()", WRONG, False, True, 125),
        ("raise ValueError(x.shape)", WRONG, False, True, 125),
        ("return 3 * x", WRONG, False, True, 1),
        ("", WRONG, False, True, 125),
        ("", WRONG, False, False, 2),
    ],
    ids=["crash", "mended crash", "crash instead", "raises instead", "wrong", "no module", "none, no bisect"],
)
def test_the_exit_status(body, finding, fatal, bisect, expected, tmp_path):
    assert status(script(tmp_path, body, finding, fatal=fatal, bisect=bisect)) == expected


def test_the_root_is_relative_to_a_script_below_it():
    registry = Path("/a/b/registry.toml")
    assert root_of(registry, Path("/a/b/.opcheck/repro/x.py")) == "Path(__file__).resolve().parents[2]"
    assert root_of(registry, Path("/tmp/x.py")) == "Path('/a/b')"


@pytest.mark.parametrize(
    ("check", "tensor", "expected"),
    [("", "", "numerics"), ("memory", "", "memory"), ("", "x_ptr", "memory"), ("slices", "", None)],
)
def test_the_failure_that_is_meant(check, tensor, expected):
    seen = replace(WRONG, check="memory", tensor="x_ptr")
    report = CaseReport(id="mine::double[float32;;normal;;;;0]@cpu", verdict=Verdict.FAIL, findings=(seen, WRONG))
    found = repro._chosen(report, argparse.Namespace(check=check, tensor=tensor))
    assert (found and found.check) == expected


def test_a_script_is_python_whatever_the_finding_says(tmp_path):
    odd = replace(WRONG, detail='"""\n{braces} \\', law="# a 'law'")
    file = script(tmp_path, "return x", replace(odd, check="numerics"), fatal=False, bisect=False)
    compile(file.read_text(), str(file), "exec")
