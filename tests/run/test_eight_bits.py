"""Inputs of 8-bit floats, for which torch lacks some of its operations."""

from __future__ import annotations

import pytest
import torch

import opcheck
from opcheck import Case, Sample
from opcheck.core.case import Dims
from opcheck.core.outcome import Registration
from opcheck.core.policy import Contract
from opcheck.registry import spec
from opcheck.run.library import registration
from opcheck.run.roles import run_role

CPU = torch.device("cpu")
E4M3 = "float8_e4m3fn"


def samples(case: Case) -> Sample:
    return Sample(case.tensor("cols", name="x"))


def reference(x):
    return 3.0 * x.float()


def declare(name, writes):
    @opcheck.register(f"tests_eight_bits::{name}", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        out = 3.0 * x.float()
        if writes:
            x[0] = 7.0
        return out

    op.register_fake(lambda x: torch.empty_like(x, dtype=torch.float32))


declare("right", writes=False)
declare("writing", writes=True)


@pytest.mark.parametrize(("name", "says"), [("right", ""), ("writing", "x is not defined as mutable but was mutated")])
def test_what_is_written_into_is_seen(name, says):
    name = f"tests_eight_bits::{name}"
    contract = Contract(name=name, kind="elementwise", dtypes=(E4M3,), dims=("cols",), no_grad={"x": "of 8 bits"})
    case = Case(op=name, dtype=E4M3, dims=Dims(cols=5))
    found = registration(spec(name), contract, case, CPU, Registration(test="test_schema"))
    assert says in found.failure
    assert bool(found.failure) is bool(says)


@pytest.mark.parametrize(("values", "finite"), [("normal", True), ("one_nan", False)])
def test_whether_they_are_finite_is_known(values, finite):
    case = Case(op="tests_eight_bits::right", dtype=E4M3, dims=Dims(cols=5), values=values)
    assert run_role(spec(case.op), case, "target", CPU).finite is finite
