"""The command line as its users meet it: every mistake is told in one sentence before anything starts."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest

import opcheck.session
from opcheck.commands import explain
from opcheck.core.version import VERSION
from tests.command_line import ROOT
from tests.command_line import opcheck as call

REGISTRY = str(ROOT / "tests/bad/registry.toml")
RIGHT = "bad::right[float32;n=4;normal;;;;0]@cpu"


@pytest.fixture(autouse=True)
def no_workers(monkeypatch):
    """Fail where anything is started: a mistake on the command line is told at once."""

    def refuse(**options):
        raise AssertionError("workers were started")

    monkeypatch.setattr(opcheck.session, "Pool", refuse)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("", "opcheck: the following arguments are required: COMMAND"),
        ("frobnicate", "opcheck: argument COMMAND: invalid choice: 'frobnicate' (choose from"),
        ("audit", "opcheck: audit what? name ops (globs work), or give --all, or --case ID"),
        ("audit --all --frobnicate", "opcheck: unrecognized arguments: --frobnicate"),
        ("audit --all ops::softmax", "opcheck: --all audits every op; leave it out, or ops::softmax"),
        (f"audit --all --case {RIGHT}", "opcheck: --case names one case of one op; leave out the names of ops"),
        ("audit --all --check numrics", "opcheck: --check: 'numrics' is not a check; there are "),
        ("audit --all --check numrics", "; did you mean numerics?"),
        ("audit --all --check sanitize", "opcheck: --check sanitize: name its tools with --sanitize, of memcheck, r"),
        ("audit --all --sanitize memchek", "opcheck: --sanitize: 'memchek' is not a sanitizer; there are memcheck, "),
        ("audit --all --sanitize memchek", "; did you mean memcheck?"),
        ("audit --all --sanitize ,", "opcheck audit: argument --sanitize: ',' names no sanitizer; there are memcheck"),
        (
            "audit --all --backend cpu --sanitize memcheck,gsan",
            "opcheck: --sanitize watches compiled kernels and this audit runs on cpu; call it with --backend cuda",
        ),
        (
            "audit --all --backend cuda --check ulp --sanitize memcheck",
            "opcheck: --sanitize runs the check sanitize alone; leave out --check ulp",
        ),
        ("audit --all --format yaml", "opcheck: --format 'yaml' is not a format; there are table, "),
        ("audit --all --format jsn", "; did you mean json?"),
        ("audit --all --format json=", "opcheck: --format 'json=' names no file; write --format json=FILE"),
        ("audit --all --format json --format table", "opcheck: two reports would go to the same place"),
        ("audit --all --format json=a --format table=no/../a", "opcheck: two reports would go to the same place"),
        ("audit --all --format json=a -o b", "opcheck: -o takes one report without a file of its own"),
        (
            "audit --all -o no/such/folder/x",
            "opcheck: cannot write no/such/folder/x: there is no folder no/such/fol",
        ),
        ("audit --all -o /", "opcheck: cannot write /: it is a folder; name a file in it"),
        ("audit --all -o /proc/no-file", "opcheck: cannot write /proc/no-file: No such file or directory"),
        ("audit --all --format json=/proc/version", "opcheck: cannot write /proc/version: "),
        ("audit --all -n 0", "opcheck audit: argument -n: '0' should be a number of workers, 1 or more, or auto"),
        ("audit --all -n=-3", "opcheck audit: argument -n: '-3' should be a number of workers"),
        ("audit --all --timeout 0", "argument --timeout: '0' should be a number of seconds, more than 0 and at mo"),
        ("audit --all --timeout nan", "argument --timeout: 'nan' should be a number of seconds"),
        ("audit --all --timeout inf", "argument --timeout: 'inf' should be a number of seconds"),
        ("audit --all --timeout soon", "argument --timeout: 'soon' should be a number of seconds"),
        ("audit --all --level nonsense", "argument --level: invalid choice: 'nonsense' (choose from"),
        ("audit --all --seed x", "argument --seed: invalid int value: 'x'"),
        ("audit --all --durations=-1", "argument --durations: '-1' should be a number"),
        ("audit --all -k (softmax", "opcheck: -k '(softmax' cannot be read near its end; it takes words, and, or"),
        (
            "audit --case nonsense",
            "opcheck: case id 'nonsense' is not of the form op[dtype;dims;values;layout;varia",
        ),
        ("audit --all --registry /", "opcheck: / is a folder; the registry is a file, such as /registry.toml"),
        ("audit --all --registry no/file", "opcheck: no registry at "),
        ("lint --registry no/file", "opcheck: no registry at "),
        (f"list --registry {sys.executable}", "is not UTF-8; TOML files are UTF-8"),
        ("show", "opcheck show: the following arguments are required: OP"),
        ("explain numrics", "opcheck: 'numrics' is not a check; there are "),
        ("explain numrics", "; did you mean numerics?"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(arguments, sentence):
    said = call(*arguments.split())
    assert said.status == 4
    assert said.out == ""
    assert sentence in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("name", ["audit", "list", "show ops::softmax", "lint"])
def test_no_registry_anywhere(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = call(*name.split(), *(["--all"] if name == "audit" else []))
    assert said.status == 4
    assert said.err == (
        f"opcheck: no registry.toml in {tmp_path} or in a folder above it; start one there, or name one with "
        f"--registry\n"
    )


def test_a_file_that_was_only_tried_is_not_left_behind(tmp_path):
    said = call("audit", "--all", "-o", str(tmp_path / "new"), "--registry", "no/file")
    assert said.status == 4
    assert list(tmp_path.iterdir()) == []


def test_version():
    said = call("--version")
    assert (said.status, said.out) == (0, f"opcheck {VERSION}\n")


def test_explain():
    everything, one = call("explain"), call("explain", "numerics")
    assert everything.status == one.status == 0
    assert {line.split()[0] for line in everything.out.splitlines()} >= {"structure", "numerics", "library"}
    assert "fudge_factor = narrow 2, wide 4" in one.out
    assert "FAIL: just beyond it" in one.out


def test_ctrl_c_at_the_start(monkeypatch):
    monkeypatch.setattr(opcheck.session, "Pool", lambda **options: signal.raise_signal(signal.SIGINT))
    said = call("audit", "--all", "--registry", REGISTRY, "--backend", "cpu")
    assert (said.status, said.out, said.err) == (2, "", "opcheck: interrupted\n")


def test_our_own_fault_is_called_so_and_its_traceback_kept(monkeypatch):
    monkeypatch.setattr(explain, "all_checks", lambda: 1 // 0)
    said = call("explain")
    assert said.status == 3
    found = re.fullmatch(
        r"opcheck: internal error, ZeroDivisionError: .*; this is a bug of opcheck, its traceback is in (\S+)\n",
        said.err,
    )
    log = Path(found[1])
    assert "1 // 0" in log.read_text()
    log.unlink()
