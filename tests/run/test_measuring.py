"""Quantizations run as an audit runs them: which ties count, and what `overflow` is about."""

from __future__ import annotations

import pytest
import torch

import opcheck
from opcheck import Case, Sample
from opcheck.core.case import Dims
from opcheck.core.measure import measure
from opcheck.core.outcome import Compare, Compared, Returned
from opcheck.core.policy import Contract
from opcheck.registry import spec
from opcheck.run.execute import Executor
from opcheck.run.measuring import Nudged, measured_as
from opcheck.run.roles import run_role

CPU = torch.device("cpu")


def samples(case: Case) -> Sample:
    return Sample(case.tensor("rows", "cols", name="x"))


def golden(x):
    scale = x.abs().amax(-1, keepdim=True).clamp(min=2.0**-40) / 127.0
    return x / scale


def reference(x):
    return golden(x.float()).round().to(torch.int8)


def by_reciprocal(x):
    return (x.float() * (127.0 / x.float().abs().amax(-1, keepdim=True).clamp(min=2.0**-40))).round().to(torch.int8)


def half_away(x):
    value = golden(x.float())
    return ((value.abs() + 0.5).floor() * value.sign()).to(torch.int8)


def cut_off(x):
    return golden(x.float()).to(torch.int8)


TARGETS = {"by_reciprocal": by_reciprocal, "half_away": half_away, "cut_off": cut_off}


def declare(name, function):
    @opcheck.register(f"tests_grid::{name}", reference=reference, golden=golden, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        return function(x)

    op.register_fake(lambda x: torch.empty_like(x, dtype=torch.int8))


for each, body in TARGETS.items():
    declare(each, body)


def compared(name, values):
    """The measurement of the op's output under a family of values."""
    contract = Contract(
        name=f"tests_grid::{name}",
        kind="quantize",
        dtypes=("bfloat16",),
        dims=("rows", "cols"),
        no_grad={"x": "rounds"},
    )
    executor = Executor(spec(contract.name), contract, CPU, lambda case, label, role: None)
    case = Case(op=contract.name, dtype="bfloat16", dims=Dims(rows=64, cols=129), values=values)
    outcome = executor.execute(case, [Compare()])[Compare()]
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.evidence, Compared)
    return outcome.evidence.find("out")


@pytest.mark.parametrize(
    ("name", "values", "right"),
    [
        ("by_reciprocal", "normal", True),
        ("by_reciprocal", "half_steps", True),
        ("half_away", "half_steps", False),
        ("cut_off", "normal", False),
    ],
)
def test_which_quantizers_are_right(name, values, right):
    assert (compared(name, values).unequal == 0) is right


def test_ties_of_golden_that_float32_does_not_have_are_nobodys_fault():
    # Of 64 rows of bfloat16 several have a number of half the largest, 63.5 steps; float32 gets there or nearly.
    case = Case(op="tests_grid::by_reciprocal", dtype="bfloat16", dims=Dims(rows=64, cols=129), values="normal")
    runs = {role: run_role(spec(case.op), case, role, CPU).tensors["out"] for role in ("target", "reference", "golden")}
    strict = measure("out", runs["target"], runs["reference"], runs["golden"], quantized=True)
    assert strict.unequal == strict.ties > 0
    assert compared("by_reciprocal", "normal").unequal == 0


def test_nudged_golden_keeps_what_float32_computes_exactly():
    x = torch.tensor([[127.0, 63.5, 2.5], [3.0, 1.5, 0.25]], dtype=torch.float64)
    with Nudged().inside():
        moved = golden(x)
    assert torch.equal(moved[0], x[0])
    assert (moved[1, 1:] != golden(x)[1, 1:]).all()
    assert torch.allclose(moved, golden(x), rtol=2.0**-22)


def test_overflow_is_about_outputs_of_eight_bits():
    contract = Contract(name="tests_grid::x", kind="quantize", dtypes=("float32",), dims=("n",), overflow="saturate")
    inf = torch.tensor([torch.inf, 1.0])
    assert measured_as(contract, "out 1", inf, inf, inf.double()).misplaced == ()
    eight = torch.tensor([448.0, 1.0]).to(torch.float8_e4m3fn)
    assert measured_as(contract, "out 0", eight, eight, inf.double()).misplaced == ()
    nan = torch.tensor([torch.nan, 1.0]).to(torch.float8_e4m3fn)
    assert [item.kind for item in measured_as(contract, "out 0", nan, eight, inf.double()).misplaced] == ["Inf missing"]
