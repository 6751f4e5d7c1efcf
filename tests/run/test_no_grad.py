"""An op without a backward is right where the contract declares its inputs `no_grad`, and only there."""

from __future__ import annotations

import pytest
import torch

import opcheck
from opcheck import Case, Sample
from opcheck.core.case import Dims
from opcheck.core.outcome import Compare, Compared, Returned
from opcheck.core.policy import Contract
from opcheck.registry import spec
from opcheck.run.execute import Executor
from opcheck.run.fakes import fake_forms
from opcheck.run.roles import RoleFailed

NAME = "tests_no_grad::tripled"


def reference(x):
    return 3.0 * x


def samples(case: Case) -> Sample:
    return Sample(case.tensor("cols", name="x"))


@opcheck.register(NAME, reference=reference, samples=samples)
def tripled(x: torch.Tensor) -> torch.Tensor:
    """Compute `3 * x` for x `[cols]`; no backward is registered."""
    return 3.0 * x


tripled.register_fake(torch.empty_like)


@pytest.mark.parametrize(
    ("no_grad", "misfits"),
    [pytest.param({"x": "a table"}, [], id="declared"), pytest.param({}, ["grad x"], id="undeclared")],
)
def test_no_backward(no_grad, misfits):
    contract = Contract(name=NAME, kind="elementwise", dtypes=("float32",), dims=("cols",), no_grad=no_grad)
    executor = Executor(spec(NAME), contract, torch.device("cpu"), lambda case, label, role: None)
    case = Case(op=NAME, dtype="float32", dims=Dims(cols=5))
    outcome = executor.execute(case, [Compare()])[Compare()]
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.evidence, Compared)
    assert [item.tensor for item in outcome.evidence.misfits] == misfits
    assert [item.tensor for item in outcome.evidence.tensors] == ["out"]


def test_fakes_have_no_backward_where_no_input_promises_a_gradient():
    case = Case(op=NAME, dtype="float32", dims=Dims(cols=5))
    found = fake_forms(spec(NAME), case, torch.device("cpu"), no_grad={"x": "a table"})
    assert [form.tensor for form in found.forms] == ["out"]
    with pytest.raises(RoleFailed, match="no autograd formula"):
        fake_forms(spec(NAME), case, torch.device("cpu"))
