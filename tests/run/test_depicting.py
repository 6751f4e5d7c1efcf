"""What fails is depicted in the terms of the check that it fails; what passes is not run once more."""

import math

import pytest
import torch

from benchmarks.conditioning import WRONG, report_of
from opcheck.auditor import audit_case
from opcheck.checks import all_checks
from opcheck.checks.protocol import Subject
from opcheck.core.case import Case, Dims
from opcheck.core.depicted import Depict
from opcheck.core.policy import Contract, Policy
from opcheck.core.verdict import Verdict
from opcheck.run.execute import Executor
from tests.diagnosis.judged import spec_of

CHECKS = ("structure", "numerics", "slices", "ulp", "bias")


def scaled(x):
    return x * 3.0


def doubled_row(x):
    """One wrong row, of the scale of the others."""
    return scaled(x) * torch.where(torch.arange(x.shape[0], device=x.device) == 2, 2.0, 1.0)[:, None].to(x.dtype)


def lost(x):
    """NaN in one element."""
    wrong = torch.zeros_like(x)
    wrong[1, 5] = math.nan
    return scaled(x) + wrong


def nudged(x):
    """Three ulp too much in one element."""
    far = torch.zeros_like(x)
    far[0, 0] = 3 * torch.finfo(x.dtype).eps
    return scaled(x) * (1 + far)


class Spy(Executor):
    """An executor that remembers its trials."""

    def execute(self, case, trials):
        given = tuple(trials)
        self.__dict__.setdefault("asked", []).extend(given)
        return super().execute(case, given)


def audited(target, *, dtype="float32", kind="elementwise", checks=CHECKS, rows=4, cols=40):
    dims = Dims(rows=rows, cols=cols)
    contract = Contract(name="t::op", kind=kind, dtypes=(dtype,), dims=tuple(dims))
    case = Case(op="t::op", dtype=dtype, dims=dims)
    executor = Spy(spec_of(scaled, target), contract, torch.device("cpu"), lambda *_: None)
    chosen = {name: check for name, check in all_checks().items() if name in checks}
    report = audit_case(Subject(contract=contract, case=case), chosen, Policy(ops={"t::op": contract}), executor)
    return report, [trial for trial in executor.asked if isinstance(trial, Depict)]


def failed(report):
    return {item.check: item for item in report.findings if item.verdict is Verdict.FAIL}


def test_what_passes_is_not_depicted():
    report, asked = audited(scaled)
    assert report.verdict is Verdict.PASS
    assert asked == []
    assert not any(item.pictures for item in report.findings)


def test_numerics_depicts_where_it_looks_closer_anyway():
    report, asked = audited(doubled_row, checks=("structure", "numerics"))
    assert asked == []
    errors, counts = failed(report)["numerics"].pictures
    assert (errors.unit, errors.down, errors.across) == ("the threshold", "rows", "cols")
    assert [min(line) > 1 for line in errors.cells] == [False, False, True, False]
    assert [max(line) > 1 for line in errors.cells] == [False, False, True, False]
    assert (sum(counts.target), sum(counts.reference)) == (160, 160)


def test_a_lost_element_stands_where_it_is():
    report, asked = audited(lost)
    assert len(asked) == 1
    errors, counts = failed(report)["structure"].pictures
    assert [
        (row, col) for row, line in enumerate(errors.cells) for col, cell in enumerate(line) if cell == math.inf
    ] == [(1, 5)]
    assert sum(counts.target) == 159


def test_ulp_depicts_in_ulps():
    report, asked = audited(nudged, dtype="bfloat16")
    assert len(asked) == 1
    errors, _ = failed(report)["ulp"].pictures
    assert errors.unit == "an ulp of golden"
    assert errors.cells[0][0] > 2
    assert sum(cell > 1 for line in errors.cells for cell in line) == 1


def test_slices_depicts_in_what_each_slice_allows():
    small = torch.tensor([1000.0, 1.0, 1.0, 1.0])[:, None]

    def right(x):
        return x * small.to(x.dtype)

    def zeroed(x):
        return right(x) * torch.tensor([1.0, 1.0, 0.0, 1.0])[:, None].to(x.dtype)

    dims = Dims(rows=4, cols=40)
    contract = Contract(name="t::op", kind="normalization", dtypes=("bfloat16",), dims=tuple(dims))
    executor = Executor(spec_of(right, zeroed), contract, torch.device("cpu"), lambda *_: None)
    chosen = {name: check for name, check in all_checks().items() if name in CHECKS}
    subject = Subject(contract=contract, case=Case(op="t::op", dtype="bfloat16", dims=dims))
    found = failed(audit_case(subject, chosen, Policy(ops={"t::op": contract}), executor))
    errors, _ = found["slices"].pictures
    assert errors.unit == "what its slice allows"
    assert [max(line) > 1 for line in errors.cells] == [False, False, True, False]


@pytest.mark.parametrize("name", ["each term up 1 ulp"])
def test_without_the_gate_the_errors_are_in_units_of_the_references(name):
    report = report_of(WRONG[name], 1e8, Dims(rows=64, cols=256), 0, terms=True)
    (found,) = (item for item in report.findings if item.check == "numerics" and item.tensor == "out")
    errors, counts = found.pictures[:2]
    assert {errors.unit, counts.unit} == {"the reference's RMS error"}
    assert sum(counts.target) == 16 * 64
    mean = sum(n * (a + b) / 2 for n, a, b in zip(counts.target, counts.edges, counts.edges[1:], strict=False))
    assert mean / sum(counts.target) > 0.5  # what it fails for: its errors have a mean


def test_growth_is_depicted_where_the_conditioning_analysis_measured_it():
    report = report_of(WRONG["partial sums in float16"], 1e8, Dims(rows=64, cols=256), 0, terms=False)
    (found,) = (item for item in report.findings if item.check == "numerics" and item.tensor == "out")
    _, _, drawn = found.pictures
    assert (drawn.kind, drawn.dim, drawn.over) == ("slope", "cols", "")
    assert drawn.lengths == (4, 16, 64, 256, 1024)
    assert all(target > reference > 0 for target, reference in zip(drawn.target, drawn.reference, strict=True))
    assert drawn.excess == pytest.approx(drawn.target_exponent - drawn.reference_exponent)
