"""The command line at work: cases, reports, streams, signals, and the exit status of each."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from opcheck.cli import main
from opcheck.commands import doctor
from opcheck.session import Options, Session
from tests.command_line import ROOT, Said, command, shell, start
from tests.command_line import opcheck as call

REGISTRY = str(ROOT / "tests/bad/registry.toml")
RIGHT = "bad::right[float32;n=4;{};;;;0]@cpu"
FEW = ("--level", "quick", "--budget", "0")
CASES = (
    *(RIGHT.format(values) for values in ("normal", "large_mean", "zeros", "tail")),
    "bad::right[float32;n=4;normal;grad:out=expanded;;;0]@cpu",
    "bad::right[float32;n=4;normal;x=padded;;;0]@cpu",
    "bad::right[float32;n=0;normal;;;;0]@cpu",
)
SUMMARY = f"1 op, {len(CASES)} cases: 1 PASS; may merge (exit 0)"


@pytest.fixture(scope="module")
def session():
    """One session for all tests that need workers: their start is what costs."""
    with Session.open(Options(registry=Path(REGISTRY), backend="cpu", workers=1, timeout=20.0)) as shared:
        yield shared


@pytest.fixture
def workers(session, monkeypatch):
    """Have the command line use the open session, with the options that it was given."""
    monkeypatch.setattr(Session, "open", classmethod(lambda cls, options: replace(session, options=options)))
    monkeypatch.setattr(Session, "close", lambda self: None)


@pytest.mark.usefixtures("workers")
class TestCases:
    @pytest.mark.parametrize(
        ("case", "sentence"),
        [
            ("bad::write[float32;n=4;normal;;;;0]@cpu", "no op is called 'bad::write'; did you mean bad::right?"),
            ("bad::right[float32;n=4;normal;;;;0]@cuda", "this audit runs on cpu; call it with --backend cuda"),
            ("bad::right[float32;n=4;normal;;;;0]@tpu", "'tpu' is not a backend; it should be one of cpu, cuda"),
            ("bad::right[float33;n=4;normal;;;;0]@cpu", "'float33' is not an element type; it should be one of float6"),
            ("bad::right[float64;n=4;normal;;;;0]@cpu", "the contract does not promise float64; it promises float32"),
            ("bad::right[;n=4;normal;;;;0]@cpu", "'' is not an element type"),
            (
                "bad::right[y=float32;n=4;normal;;;;0]@cpu",
                "its dtype names 'y', which the op does not take; it takes x",
            ),
            ("bad::right[float32;;normal;;;;0]@cpu", "its dims are none; the contract's are n"),
            ("bad::right[float32;m=4;normal;;;;0]@cpu", "its dims are m; the contract's are n"),
            ("bad::right[float32;...0=2,n=4;normal;;;;0]@cpu", "it has leading dimensions, and the contract's dims do"),
            ("bad::right[float32;n=5;normal;;;;0]@cpu", "n is 5; the contract's sizes are 4"),
            ("bad::right[float32;n=x;normal;;;;0]@cpu", "dimension 'n=x' should read name=size, a size of 0 or more"),
            ("bad::right[float32;n=4;strange;;;;0]@cpu", "'strange' is not a family of values; there are normal, "),
            ("bad::right[float32;n=4;normal;x=odd;;;0]@cpu", "'odd' is not a layout; there are transposed, padded, of"),
            ("bad::right[float32;n=4;normal;y=offset;;;0]@cpu", "its layout names 'y', which the op does not take"),
            ("bad::right[float32;n=4;normal;;eps=1;;0]@cpu", "its variant names 'eps', which the op does not take"),
            (
                "bad::right[float32;n=4;normal;;eps=one;;0]@cpu",
                "variant 'eps=one' should read name=value, the value in",
            ),
            (
                "bad::right[float32;n=4;normal;;%size=1;;0]@cpu",
                "%size is not a reserved name; there are %config, %p",
            ),
            ("bad::right[float32;n=4;normal;;%config=-1;;0]@cpu", "%config is -1; it should be an integer of 0 or mor"),
            ("bad::right[float32;n=4;normal;;;y;0]@cpu", "its grads names 'y', which the op does not take; it takes x"),
            ("bad::right[float32;n=4;normal;;;;first]@cpu", "seed 'first' is not an integer"),
            ("bad::right[float32;n=4;normal;;;0]@cpu", "has 6 fields between the brackets; the form is op[dtype;dims;"),
            ("bad::right[float32;n=4;normal;;;;0]", "is not of the form op[dtype;dims;values;layout;variant;grads;se"),
        ],
    )
    def test_a_case_that_does_not_fit(self, case, sentence):
        said = call("audit", "--case", case)
        assert said.status == 4
        assert said.out == ""
        assert sentence in said.err

    def test_a_case_that_fits_runs_alone_and_once(self):
        case = RIGHT.format("zeros")
        said = call("audit", "--case", case, "--case", case, "--format", "json")
        assert said.status == 0
        assert [item["id"] for item in json.loads(said.out)["ops"][0]["cases"]] == [case]

    def test_collect_prints_the_cases_and_runs_none(self):
        said = call("audit", "bad::right", "--co", *FEW)
        assert said.status == 0
        assert said.out.split() == list(CASES)
        about, total = said.err.splitlines()
        assert re.match(
            r"bad::right: 7 cases, about \d+(\.\d)? s of one core; pairs covered: \d+ of \d+ \(dtype x ", about
        )
        assert total == "7 cases of 1 op"

    def test_a_budget_adds_cases_that_combine_options(self):
        few, more = (call("audit", "bad::right", "--co", "--budget", budget).out.split() for budget in ("0", "4"))
        assert set(few) < set(more)
        assert set(CASES) <= set(few)
        assert call("audit", "bad::right", "--co", "--budget", "-1").status == 4

    def test_an_expression_that_matches_nothing(self):
        said = call("audit", "--all", "-k", "nothing")
        assert said.status == 5
        assert said.out == "0 ops, 0 cases: nothing audited; may not merge (exit 5)\n"
        assert "opcheck: -k 'nothing' matches no case; --co without it lists them\n" in said.err
        assert call("audit", "--all", "-k", "nothing", "--co").status == 5

    def test_an_expression_leaves_out_the_ops_that_it_does_not_match(self):
        said = call("audit", "--all", "-k", "right and zeros", "-q", *FEW)
        assert (said.status, said.out) == (0, "1 op, 1 case: 1 PASS; may merge (exit 0)\n")

    def test_an_op_that_there_is_not(self):
        said = call("audit", "bad::write")
        assert (said.status, said.out) == (4, "")
        assert said.err == "opcheck: no op is called 'bad::write'; did you mean bad::right?\n"


@pytest.mark.usefixtures("workers")
class TestOutput:
    def test_json_in_a_file_beside_the_table(self, tmp_path):
        said = call("audit", "bad::right", *FEW, "--format", "table", "--format", f"json={tmp_path / 'report.json'}")
        report = json.loads((tmp_path / "report.json").read_text())
        assert (said.status, report["exit_status"], report["verdict"]) == (0, 0, "PASS")
        assert said.out.startswith("bad::right  PASS\n")
        assert said.out.endswith(f"{SUMMARY}\n")
        assert said.err == "7 of 7 cases\n"

    def test_quiet_and_verbose(self):
        quiet, plain, verbose = (call("audit", "bad::right", *FEW, *flags) for flags in (["-q"], [], ["-v"]))
        assert quiet.out == f"{SUMMARY}\n"
        assert quiet.err == ""
        assert RIGHT.format("zeros") not in plain.out
        assert f"  PASS  {RIGHT.format('zeros')}  " in verbose.out

    def test_durations(self):
        said = call("audit", "bad::right", *FEW, "-q", "--durations", "2")
        lines = re.findall(r"^ +\d+\.\d\d s  bad::right\[", said.err, re.MULTILINE)
        assert (said.status, len(lines)) == (0, 2)

    def test_stop_at_the_first_that_may_not_merge(self):
        said = call("audit", "bad::gives_none", "bad::right", "-x", *FEW)
        assert said.status == 1
        assert "6 planned cases did not run" in said.out
        assert "2 ops, 1 case: " in said.out.splitlines()[-1]

    def test_a_full_disk_costs_nothing_that_was_computed(self):
        said = call("audit", "bad::right", *FEW, "-q", "-o", "/dev/full")
        assert (said.status, said.out) == (0, f"{SUMMARY}\n")
        assert said.err == "opcheck: cannot write /dev/full (No space left on device); here it is instead\n"

    def test_a_report_that_reaches_nobody_is_no_success(self, monkeypatch, capfd):
        with open("/dev/full", "w") as full:
            monkeypatch.setattr(sys, "stdout", full)
            assert main(["audit", "bad::right", "-q"]) == 4
        assert capfd.readouterr().err == (
            "opcheck: cannot write to standard output (No space left on device); give the report a file with -o FILE\n"
        )

    def test_a_letter_that_the_terminal_lacks(self, monkeypatch, session):
        formula = "2·x"
        contract = replace(session.policy.ops["bad::right"], formula=formula)
        policy = replace(session.policy, ops={**session.policy.ops, "bad::right": contract})
        monkeypatch.setattr(
            Session, "open", classmethod(lambda cls, options: replace(session, options=options, policy=policy))
        )
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
        assert main(["audit", "bad::right"]) == 0
        assert rb"2\xb7x" in raw.getvalue()

    def test_list(self):
        said = call("list")
        assert said.status == 0
        (line,) = (line for line in said.out.splitlines() if line.startswith("bad::right"))
        assert re.fullmatch(r"bad::right +contraction +float32 +yes +\S+tests/bad/ops_bad/targets\.py:\d+", line)
        assert "no (mutates)" in said.out

    def test_show(self):
        said = call("show", "bad::right", "--level", "quick")
        assert said.status == 0
        assert "  schema      bad::right(Tensor x) -> Tensor\n" in said.out
        (count,) = re.findall(r"^  cases       (\d+) at level quick$", said.out, re.MULTILINE)
        assert int(count) == len(re.findall(r"^    bad::right\[", said.out, re.MULTILINE))
        assert all(f"    {case}\n" in said.out for case in CASES)
        assert call("show", "bad::write").status == 4

    def test_lint_of_a_registry_that_agrees(self):
        said = call("lint")
        assert (said.status, said.out) == (0, "")
        assert re.fullmatch(r"\d+ ops: registry\.toml and the registrations agree\n", said.err)

    def test_a_target_leaves_nothing_changed_for_the_next(self):
        # One worker runs both; the second reference is wrong under the default dtype that the first target sets.
        said = call("audit", "bad::leaves_state", "bad::needs_state")
        assert said.status == 0
        assert "\n\nbad::needs_state  PASS\n" in said.out


class TestDoctor:
    @pytest.mark.parametrize(("healthy", "status"), [(True, 0), (False, 1)])
    def test_its_status_is_the_machine_s(self, monkeypatch, healthy, status):
        pool = MagicMock(preload_failures={"triton": "ModuleNotFoundError: No module named 'triton'"})
        pool.run_once.return_value = [{"lines": ["torch 2"], "healthy": healthy}]
        monkeypatch.setattr(doctor, "Pool", lambda **options: pool)
        said = call("doctor")
        assert said.status == status
        assert said.out == "MISSING  triton: ModuleNotFoundError: No module named 'triton'\ntorch 2\n"


BOTH = (
    "audit", "bad::gives_none", "bad::right", "--registry", REGISTRY, "--backend", "cpu", "-n", "1", "-k", "n=4", *FEW,
)  # fmt: skip


class TestProcess:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_ctrl_c_ends_it_and_prints_what_was_finished(self, number):
        ops = ("bad::gives_none", "bad::hangs")
        process = subprocess.Popen(
            command("audit", *ops, "--registry", REGISTRY, "--backend=cpu", "-n1", "--level", "quick", "--timeout=8"),
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        for _ in range(3):
            assert process.stderr.readline().startswith("FAIL  bad::gives_none[")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 2
        assert err == ""
        assert out.startswith("bad::gives_none  FAIL\n")
        assert "3 planned cases did not run" in out
        assert out.endswith("may not merge (exit 2); ended early: this is what was finished\n")

    def test_a_reader_that_leaves_does_not_open_the_gate(self):
        said = shell('set -o pipefail; "$@" 2>&1 | head -n 1', *BOTH)
        assert said.status == 1
        assert said.out == "FAIL  bad::gives_none[float32;n=4;normal;;;;0]@cpu\n"
        assert said.err == ""

    def test_a_list_may_be_cut_short(self):
        said = shell('set -o pipefail; "$@" | head -n 1', "explain")
        assert said.status == 0
        assert said.err == ""

    def test_a_closed_standard_error(self):
        said = shell('"$@" 2>&-', *BOTH)
        assert said.status == 1
        assert said.out.startswith("bad::gives_none  FAIL\n")
        assert said.out.endswith("2 ops, 12 cases: 1 PASS, 1 FAIL; may not merge (exit 1)\n")

    def test_all_streams_closed(self, tmp_path):
        said = shell('"$@" <&- >&- 2>&-', *BOTH, "--format", "table", "--format", f"json={tmp_path / 'report.json'}")
        assert said == Said(status=1, out="", err="")
        assert json.loads((tmp_path / "report.json").read_text())["exit_status"] == 1

    def test_warnings_that_are_errors(self):
        said = start("audit", "bad::right", *BOTH[3:], environment={**os.environ, "PYTHONWARNINGS": "error"})
        assert (said.status, said.err) == (0, "6 of 6 cases\n")
        assert said.out.endswith("1 op, 6 cases: 1 PASS; may merge (exit 0)\n")


@pytest.mark.usefixtures("workers")
def test_cases_to_which_no_chosen_check_applies_are_left_out(capsys):
    arguments = ["audit", "bad::right", "--registry", REGISTRY, *FEW, "--co"]
    assert main([*arguments, "--level", "full", "--check", "stress"]) == 0
    assert capsys.readouterr().out.split() == [RIGHT.format("normal")]
    assert main([*arguments, "--check", "stress"]) == 5
