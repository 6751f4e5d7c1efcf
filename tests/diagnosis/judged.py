"""Run a planted fault as an audit does, from the comparison over the gate to the words of the diagnosis."""

from __future__ import annotations

import inspect

import torch

from opcheck import Sample
from opcheck.checks.numerics import NumericsLimits, check
from opcheck.checks.protocol import Subject
from opcheck.core.case import Case, Dims
from opcheck.core.policy import Contract
from opcheck.core.spec import Argument, OpSpec
from opcheck.core.verdict import Verdict
from opcheck.run.execute import Executor

ROWS, COLS = 12, 40
SHAPES = {"x": ("rows", "cols"), "y": ("rows", "cols"), "weight": ("cols",), "square": ("side", "twin")}
DTYPES = ("float32", "float16", "bfloat16")


def spec_of(right, target):
    """Return an op whose golden and reference are `right`; its arguments are those of `SHAPES` with their names."""
    names = tuple(inspect.signature(right).parameters)

    def samples(case):
        return Sample(*(case.tensor(*SHAPES[name], name=name) for name in names))

    return OpSpec(
        name="t::op", target=target, reference=right, golden=right, samples=samples,
        arguments=tuple(Argument(name=name, kind="tensor") for name in names),
    )  # fmt: skip


def failures(right, target, *, dtype="float32", seed=0, reduces=(), sizes=None, **fields):
    """Return what numerics says of each tensor that fails: its name, and the words behind "looks like"."""
    dims = Dims({"rows": ROWS, "cols": COLS, "side": 16, "twin": 16, **(sizes or {})})
    contract = Contract(name="t::op", kind="reduction", dtypes=DTYPES, dims=tuple(dims), reduces=reduces)
    case = Case(op="t::op", dtype=dtype, dims=dims, seed=seed, **fields)
    executor = Executor(spec_of(right, target), contract, torch.device("cpu"), lambda case, label, role: None)
    subject = Subject(contract=contract, case=case)
    seen = {}
    while trials := [item for item in check.plan(subject, seen, lambda _: NumericsLimits()) if item not in seen]:
        seen |= executor.execute(case, trials)
    found = check.judge(subject, seen, lambda _: NumericsLimits())
    return {item.tensor: item for item in found if item.verdict is Verdict.FAIL}
