"""Each kernel of `tests/building` that does not build, does not fit or adds otherwise is found; its twin passes."""

import re
import sys
from pathlib import Path

import pytest

from opcheck.core.building import NO_KERNEL
from opcheck.core.verdict import Verdict
from opcheck.session import audit

REGISTRY = Path(__file__).parent / "building" / "registry.toml"
KERNELS = REGISTRY.parent / "kernels" / "__init__.py"
LIMITED = Verdict.PASS_WITH_LIMITATIONS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no Triton elsewhere")


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    """An audit by this check alone, with a cache of its own, so that everything is really built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        report = audit(registry=REGISTRY, backend="cpu", checks=("compile",))
    assert report.problems == ()
    return {op.op: op for op in report.ops}


def findings(op):
    (case,) = op.cases
    return {item.verdict: item for item in case.findings}


def line(text, *, before):
    """The first line of the kernels' file that has the text, or the line before it."""
    number = next(at for at, each in enumerate(KERNELS.read_text().splitlines(), 1) if text in each)
    return f"{KERNELS.relative_to(Path.cwd())}:{number - before}"


@pytest.mark.parametrize(("name", "verdict", "kernel", "said", "source"), [
    ("mismatched", Verdict.FAIL, "mismatched_kernel", "same dtype. Got fp16 and fp32", "at, tl.dot(a, b))"),
    ("odd_block", Verdict.FAIL, "block_kernel", "range must be a power of 2", "    at = tl.arange(0, BLOCK)"),
    # 16 stages of two tiles of 64 x 64 float16 are 16 * 2 * 64 * 64 * 2 bytes; 227 KB are 232448.
    ("stages", Verdict.FAIL, "pipeline_kernel", "262144 bytes of shared memory, sm_90 has 232448", "def pipeline_"),
    ("tuned", Verdict.FAIL, "pipeline_kernel", "262144 bytes of shared memory, sm_90 has 232448", "def pipeline_"),
    ("double", LIMITED, "double_kernel", "FP64 operations without an FP64 argument", "v.to(tl.float64)"),
    ("tf32", LIMITED, "dot_kernel", "rounds its float32 operands to TF32", "input_precision=PRECISION"),
    ("atomics", LIMITED, "atomic_kernel", "atomic additions in bfloat16 at", "tl.atomic_add("),
    ("spills", LIMITED, "sum_kernel", "words of each thread lie in local memory, allowed 32", "def sum_kernel"),
])  # fmt: skip
def test_a_fault_is_found_at_its_line(ops, name, verdict, kernel, said, source):
    op = ops[f"wrong::{name}"]
    found = findings(op)[verdict]
    assert op.verdict is verdict
    assert (found.check, found.tensor) == ("compile", kernel)
    assert said in found.detail
    # A kernel begins at its decorator, an operation is on its own line.
    assert line(source, before=source.startswith("def ")) in found.detail


@pytest.mark.parametrize("name", ["mismatched", "odd_block", "stages", "double", "tf32", "atomics", "spills"])
def test_the_right_twin_is_silent(ops, name):
    op = ops[f"right::{name}"]
    assert op.verdict is Verdict.PASS, findings(op)
    detail = findings(op)[Verdict.PASS].detail
    assert re.fullmatch(r"1 builds of 1 kernel; sm_90 at most \d+ registers and 0 spilled, \d+ bytes .*", detail)


def test_a_configuration_that_does_not_fit_only_limits_where_another_does(ops):
    op = ops["right::tuned"]
    assert op.verdict is LIMITED
    assert findings(op)[LIMITED].detail.endswith("for sm_90 the autotuner leaves out 1")
    assert findings(op)[Verdict.PASS].detail.startswith("2 builds of 1 kernel")


def test_tf32_is_silent_where_the_policy_allows_it(ops):
    assert ops["allowed::tf32"].verdict is Verdict.PASS


def test_an_op_without_a_kernel_has_nothing_to_build(ops):
    assert findings(ops["other::no_kernel"])[Verdict.PASS].detail == NO_KERNEL


def test_what_is_launched_after_a_result_was_looked_at_is_said_to_be_missing(ops):
    op = ops["other::stops"]
    assert op.verdict is LIMITED
    assert "target raised ValueError" in findings(op)[LIMITED].detail
    assert findings(op)[Verdict.PASS].detail.startswith("1 builds of 1 kernel")


def test_an_empty_list_of_targets_leaves_an_op_out(ops):
    assert "other::off" not in ops


def test_the_targets_are_those_of_the_op(ops):
    assert "sm_80 at most" in findings(ops["other::old"])[Verdict.PASS].detail
