"""Failures of the gallery: shrunk they stay the same failure, and their scripts tell wrong from right."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from opcheck.core.case import Case
from opcheck.core.shrink import elements
from opcheck.repro.shrinking import audited, failures, needed, smallest
from opcheck.repro.writing import about, write
from opcheck.session import Options, Session

REGISTRY = Path(__file__).parents[1] / "broken" / "registry.toml"
LONG = 60.0  # seconds to shrink, on a busy machine

# Of each: a failing case, check and tensor, and what must remain of sizes and layout, as the kernel's fault has it.
ROWS = {
    "tail_tile": ("float32;rows=5,cols=129;normal;;", "numerics", "out", {"rows": 1, "cols": 65}, ""),
    "inplace_row": ("float32;rows=5,cols=129;normal;;", "numerics", "x", {"rows": 2, "cols": 1}, ""),
    "upstream_strides": (
        "float32;rows=5,cols=129;normal;grad:out=transposed;", "numerics", "grad x", {"rows": 2, "cols": 2},
        "grad:out=transposed",
    ),
    "naive_softmax": ("float32;rows=5,cols=129;extreme_logits;;", "structure", "out", {"rows": 1, "cols": 1}, ""),
    "input_strides": (
        "float32;rows=5,cols=129;normal;table=padded;", "structure", "out", {"rows": 2, "cols": 1}, "table=padded",
    ),
    "grad_none": ("float32;rows=5,cols=129;normal;;", "structure", "grad weight", {"rows": 1, "cols": 1}, ""),
    "empty_reduction": ("float32;rows=5,cols=0;normal;;", "structure", "the case", {"rows": 1, "cols": 0}, ""),
    "outlier_row": ("bfloat16;rows=5,cols=129;normal;;", "slices", "out", None, ""),
    "small_values": ("bfloat16;rows=5,cols=129;normal;;", "ulp", "out", None, ""),
    "truncated_store": ("bfloat16;rows=5,cols=129;normal;;", "bias", "out", None, ""),
    "float64_accepted": ("float64;rows=5,cols=129;normal;;", "refusal", "the case", {"rows": 1, "cols": 1}, ""),
    "mutates_input": ("float32;rows=5,cols=129;normal;;", "intact", "x", {"rows": 1, "cols": 1}, ""),
    "out_of_bounds_read": ("float32;rows=5,cols=129;normal;;", "memory", "x_ptr", {"rows": 1, "cols": 1}, ""),
}  # fmt: skip
#: Whose scripts are run, and whether they need opcheck: one of each kind of question and of inputs.
SCRIPTS = {
    "tail_tile": "alone",
    "upstream_strides": "alone",
    "truncated_store": "repaired",
    "float64_accepted": "alone",
    "out_of_bounds_read": "opcheck",
}
#: Run by `make test-slow`: the others ask the same of torch, Triton and opcheck.
SLOW = frozenset({"tail_tile", "float64_accepted"})


@pytest.fixture(scope="module")
def session():
    """One session for all: the start of its worker is what costs."""
    with Session.open(Options(registry=REGISTRY, backend="cpu", workers=1)) as shared:
        yield shared


@pytest.fixture(scope="module")
def shrunk(session):
    """The smallest case of each row and its failure, found once."""
    known = {}

    def of(name):
        if name not in known:
            body, check, tensor, _, _ = ROWS[name]
            case = Case.parse(f"broken::{name}[{body};;0]@cpu")
            found = failures(audited(session, case, needed(check)))
            finding = next(item for item in found if (item.check, item.tensor) == (check, tensor))
            known[name] = case, smallest(session, case, finding, LONG)
        return known[name]

    return of


@pytest.mark.parametrize("name", ROWS)
def test_the_smallest_case_fails_the_same_check_on_the_same_tensor(name, session, shrunk):
    _, check, tensor, dims, layout = ROWS[name]
    case, found = shrunk(name)
    again = audited(session, found.shrunk.case, needed(check))
    assert (check, tensor) in {(item.check, item.tensor) for item in failures(again)}
    assert found.shrunk.whole
    assert found.shrunk.case.layout == layout
    assert found.shrunk.case.seed == case.seed
    if dims is not None:
        assert found.shrunk.case.dims == dims
    else:
        assert elements(found.shrunk.case) < elements(case)


def test_the_smallest_cases_are_at_most_a_tenth_in_the_median(shrunk):
    pairs = [shrunk(name) for name in ROWS if name != "empty_reduction"]
    assert statistics.median(elements(found.shrunk.case) / elements(case) for case, found in pairs) <= 0.1


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SCRIPTS]
)
def test_a_script_exits_with_1_for_the_broken_kernel_and_with_0_for_its_right_twin(name, session, shrunk, tmp_path):
    case, found = shrunk(name)
    written = write(session, about(session, found.shrunk.case, case, found.finding, bisect=False), tmp_path)
    assert written.shows, written.said  # it was run, in a process of its own
    assert "Traceback" not in written.said
    text = written.file.read_text()
    assert written.alone == (SCRIPTS[name] != "opcheck")
    assert ("import opcheck" in text or "from opcheck" in text) == (SCRIPTS[name] == "repaired")
    right = text.replace(f"broken::{name}", f"right::{name}").replace(f"ops.broken.{name}", f"ops.right.{name}")
    assert right != text
    written.file.write_text(right)
    done = subprocess.run([sys.executable, str(written.file)], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
