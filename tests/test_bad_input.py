"""What authors get wrong in their ops: the verdict, the sentence, and that all other ops are audited still."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any

import pytest

from tests.command_line import ROOT, start

REGISTRY = "tests/bad/registry.toml"


def at(file: str, text: str) -> str:
    """The place of the only line of a module of ops that holds `text`, as reports show it."""
    lines = (ROOT / "tests/bad/ops_bad" / file).read_text().splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if text in line)
    return f"tests/bad/ops_bad/{file}:{found}"


MENDED = "; nothing can be judged until {} is mended"
NARROWS = (
    "narrows: aten._to_copy.default takes a float64 tensor and gives float32; golden must stay in float64 (drop the "
    "cast, or pass golden=None to have opcheck promote the reference)"
)
TENSORS = "should return a Tensor or a tuple of Tensors"

#: Ops whose reference, golden or samples are not fit to judge by: never the target's fault.
ORACLES = {
    "reference_raises": f"reference raised ValueError in its forward at {at('oracles.py', 'raise ValueError')}: "
    f"this reference is not written yet{MENDED.format('reference')}",
    "reference_raises_backward": "reference raised RuntimeError in its backward at "
    f"{at('oracles.py', 'raise RuntimeError')}: this reference has no backward yet",
    "reference_exits": f"reference raised SystemExit in its forward at {at('oracles.py', 'exit(0)')}",
    "reference_text": f"reference returned str; it {TENSORS}",
    "reference_itself": "reference of bad::reference_itself calls bad::reference_itself itself, which proves nothing",
    "golden_itself": "golden of bad::golden_itself calls bad::golden_itself itself, which proves nothing; write its",
    "golden_narrows": f"{at('oracles.py', 'return x.float()')}: golden of bad::golden_narrows {NARROWS}",
    "golden_narrows_backward": f"{at('oracles.py', 'grad.float()')}: golden of bad::golden_narrows_backward {NARROWS}",
    "golden_longer": "reference gives shape [4], golden [8]",
    "golden_pair": "golden does not return it; reference and golden must return the same tensors",
    "samples_none": f"samples returned NoneType; it should return opcheck.Sample(...){MENDED.format('samples')}",
    "samples_tuple": "samples returned tuple; it should return opcheck.Sample(...)",
    "samples_keyword": f"{at('sampled.py', 'scale=2.0')}: bad::samples_keyword: samples gives 'scale', which the op "
    "does not take; bad::samples_keyword(Tensor x) -> Tensor",
    "samples_twice": "samples gives 'x' twice, by position and by name",
    "samples_too_many": "samples gives 2 positional arguments; the op takes 1",
    "samples_empty": "samples gives no x, which the op needs; bad::samples_empty(Tensor x) -> Tensor",
    "samples_dimension": "samples asks for dimension 'rows'; the contract's dims are n",
    "samples_dtype": "samples asks for x in 'float33'; the element types are float64, float32, float16, bfloat16, ",
    "samples_raises": f"samples raised KeyError at {at('sampled.py', 'raise KeyError')}: 'rows'",
}

#: Targets that do not come back with what they should.
TARGETS = {
    "gives_text": "looks like: the target returns something else than its annotation says: return a Tensor",
    "gives_none": f"the target returned NoneType; it {TENSORS}",
    "gives_two": "the target returns 2 outputs, the reference 1",
    "gives_input": "looks like: the target returns an input or a view of one: return a clone",
    "mutates_alone": "the target returns 0 outputs, the reference 1; a mutating op's reference and golden, too, write "
    "into x",
    "raises": f"target raised ValueError in its forward at {at('targets.py', 'multiple of 16')}: cols must be a "
    "multiple of 16",
    "raises_backward": f"target raised ValueError in its backward at {at('targets.py', 'not written yet')}: this "
    "backward is not written yet",
    "moves_and_raises": "target raised FileNotFoundError in its forward at "
    f"{at('targets.py', 'tuned.json')}: no tuned.json here",
    "exits": f"target raised SystemExit in its forward at {at('targets.py', 'sys.exit(')}: no GPU here",
    "leaves": "target exited with status 3 without an answer\n"
    "  looks like: something in the target ends the process instead of raising",
    "leaves_quietly": "target exited with status 0 without an answer",
    "reads_null": f"target killed by SIGSEGV at {at('targets.py', 'string_at(0)')}\n"
    "  looks like: an access out of bounds",
    "is_killed": "target killed by SIGKILL, as the kernel does when memory runs out\n"
    "  looks like: the target takes more memory than there is",
    "dies_on_zeros": f"target killed by SIGSEGV at {at('targets.py', 'signal.SIGSEGV')}",
    "hangs": f"target gave no answer within 2 s; it was at {at('targets.py', 'time.sleep(1)')}\n"
    "  looks like: a loop that never ends, or a deadlock; give a slow case more with --timeout",
}

#: Targets that are right, though some of them print, change directory or leave torch's settings changed.
RIGHT = ("prints", "moves", "leaves_state", "needs_state", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One audit of all the bad ops, as its user sees it."""

    status: int
    out: str
    err: str
    ops: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    file = tmp_path_factory.mktemp("reports") / "report.json"
    # One case of each op, of one all seven: its worker dies in the middle.
    chosen = ("--level", "quick", "--budget", "0", "-k", "n=4;normal;;;;0 or dies_on_zeros", "--timeout", "2")
    arguments = ("--all", "--registry", REGISTRY, "--backend", "cpu", "--format", "table", "--format", f"json={file}")
    said = start("audit", *arguments, *chosen)
    ops = {op["op"]: op for op in json.loads(file.read_text())["ops"]}
    return Audited(status=said.status, out=said.out, err=said.err, ops=ops)


def test_every_op_of_the_registry_is_asked_about():
    declared = tomllib.loads((ROOT / REGISTRY).read_text())["op"]
    assert {name.removeprefix("bad::") for name in declared} == {*ORACLES, *TARGETS, *RIGHT}


@pytest.mark.parametrize(("op", "sentence"), ORACLES.items())
def test_the_fault_of_an_oracle_or_of_samples_is_inconclusive(audited, op, sentence):
    assert audited.ops[f"bad::{op}"]["verdict"] == "INCONCLUSIVE"
    assert sentence in block(audited.out, op)


@pytest.mark.parametrize(("op", "sentence"), TARGETS.items())
def test_the_fault_of_a_target_is_a_failure(audited, op, sentence):
    assert audited.ops[f"bad::{op}"]["verdict"] == "FAIL"
    assert sentence in block(audited.out, op)


@pytest.mark.parametrize("op", RIGHT)
def test_what_is_right_passes_among_all_that_is_not(audited, op):
    assert audited.ops[f"bad::{op}"]["verdict"] == "PASS"
    assert len(audited.ops[f"bad::{op}"]["cases"]) == 1


def test_a_death_costs_its_own_case_only(audited):
    verdicts = {case["id"]: case["verdict"] for case in audited.ops["bad::dies_on_zeros"]["cases"]}
    dead = {case for case, verdict in verdicts.items() if verdict == "FAIL"}
    assert dead == {"bad::dies_on_zeros[float32;n=4;zeros;;;;0]@cpu", "bad::dies_on_zeros[float32;n=0;normal;;;;0]@cpu"}
    assert [verdicts[case] for case in verdicts if case not in dead] == ["PASS"] * 5


def test_the_audit_may_not_merge_and_says_so_last(audited):
    assert audited.status == 1
    ops = len(ORACLES) + len(TARGETS) + len(RIGHT)
    assert audited.out.splitlines()[-1] == (
        f"{ops} ops, {ops + 6} cases: {len(RIGHT)} PASS, {len(ORACLES)} INCONCLUSIVE, {len(TARGETS)} FAIL; "
        f"may not merge (exit 1)"
    )


def test_what_kernels_print_stays_out_of_the_report(audited):
    for text in (audited.out, audited.err):
        assert "NOISE" not in text
        assert "Traceback" not in text
        assert "internal error" not in text
    assert audited.out.startswith("bad::dies_on_zeros  FAIL\n")
    # Standard error holds a line for each case that is not right, and nothing else.
    begins = {line.split("  ")[0] for line in audited.err.splitlines()}
    assert begins <= {"FAIL", "INCONCLUSIVE", "25 of 45 cases", "45 of 45 cases"}


def block(report: str, op: str) -> str:
    """What the report says about one op."""
    start = report.index(f"bad::{op}  ")
    following = [report.find(f"\n\nbad::{other}  ", start) for other in (*ORACLES, *TARGETS, *RIGHT)]
    return report[start : min((end for end in following if end > 0), default=len(report))]
