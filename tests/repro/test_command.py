"""`opcheck repro`: what it refuses, and what it says where there is nothing to reproduce."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opcheck.session import Options, Session
from tests.command_line import ROOT
from tests.command_line import opcheck as call

REGISTRY = str(ROOT / "tests/broken/registry.toml")
WRONG = "broken::tail_tile[float32;rows=5,cols=129;normal;;;;0]@cpu"
RIGHT = "right::tail_tile[float32;rows=5,cols=129;normal;;;;0]@cpu"


@pytest.fixture(scope="module")
def session():
    with Session.open(Options(registry=Path(REGISTRY), backend="cpu", workers=1)) as shared:
        yield shared


@pytest.fixture(autouse=True)
def workers(session, monkeypatch):
    """Have the command line use the open session, with the options that it was given."""
    monkeypatch.setattr(Session, "open", classmethod(lambda cls, options: replace(session, options=options)))
    monkeypatch.setattr(Session, "close", lambda self: None)


def repro(*arguments):
    said = call("repro", "--registry", REGISTRY, *arguments)
    assert "Traceback" not in said.err
    return said


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("nonsense",), 4, "case id 'nonsense' is not of the form"),
        (("broken::tail_tiel" + WRONG[17:],), 4, "no op is called 'broken::tail_tiel'; did you mean broken::tail_tile"),
        ((WRONG.replace("cols", "k"),), 4, "its dims are rows, k; the contract's are rows, cols"),
        ((WRONG, "-o", "/dev/null/there"), 4, "cannot write to /dev/null/there: Not a directory"),
        ((WRONG, "--shrink-seconds", "0"), 4, "'0' should be a number of seconds, more than 0"),
        ((RIGHT,), 5, "nothing to reproduce: right::tail_tile[float32;rows=5,cols=129;normal;;;;0]@cpu passes"),
        ((WRONG, "--tensor", "grad x"), 5, "grad x does not fail in broken::tail_tile"),
        ((WRONG, "--check", "structure"), 5, "passes structure"),
    ],
)
def test_mistakes_and_right_cases(arguments, status, sentence, tmp_path):
    where = () if "-o" in arguments else ("-o", str(tmp_path))
    said = repro(*arguments, *where)
    assert said.status == status
    assert sentence in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_failing_case_without_shrinking(tmp_path):
    said = repro(WRONG, "--no-shrink", "--bisect", "-o", str(tmp_path))
    assert said.status == 0, said.err
    (file,) = tmp_path.glob("*.py")
    assert f"script (on its own): python {file}" in said.out
    assert f"git bisect run python {file}" in said.out
    assert f"case: {WRONG}" in file.read_text()
    assert (tmp_path / file.name).with_suffix(".safetensors").exists()
