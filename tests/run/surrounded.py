"""What the tests of composition and stress share: small eager ops of known fault, and the check's word on a trial."""

import itertools
from dataclasses import replace

import torch

from opcheck import Sample
from opcheck.checks import all_checks
from opcheck.checks.protocol import Subject
from opcheck.core.case import Case, Dims
from opcheck.core.measured import Measured
from opcheck.core.outcome import Compare, Compared, Returned
from opcheck.core.policy import Contract
from opcheck.core.spec import Argument, OpSpec
from opcheck.core.verdict import Verdict
from opcheck.registry import described

CPU = torch.device("cpu")
CASE = Case(op="t::op", dtype="float32", dims=Dims(rows=4, cols=6))
CONTRACT = Contract(name="t::op", kind="elementwise", dtypes=("float32",), dims=("rows", "cols"))
_numbers = itertools.count()


def one(case):
    return Sample(case.tensor("rows", "cols", name="x"))


def silent(case, label, role):
    """Tell nobody."""


def plain(target, reference):
    """A callable that is no torch.library op."""
    return OpSpec(
        name="t::op", target=target, reference=reference, golden=reference, samples=one,
        arguments=(Argument(name="x", kind="tensor"),),
    )  # fmt: skip


def registered(body, reference, backward, *, fake=torch.empty_like, setup_context=None, mutates=()):
    """A torch.library op of one tensor."""
    op = torch.library.custom_op(f"surrounded::op{next(_numbers)}", mutates_args=mutates)(body)
    if fake is not None:
        op.register_fake(fake)
    if backward is not None:
        op.register_autograd(backward, setup_context=setup_context or keep)
    return replace(described(op, "t::op"), reference=reference, golden=reference, samples=one)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def failures(name, trial, evidence, contract=CONTRACT, **limits):
    """What a check says against an op on the evidence of one trial, under some limits: tensor and detail."""
    check = all_checks()[name]
    tensors = tuple(Measured(tensor=item, dtype="float32", shape=(4, 6), judged=24) for item in ("out", "grad x"))
    seen = {Compare(): Returned(evidence=Compared(tensors=tensors)), trial: Returned(evidence=evidence)}
    subject = Subject(contract=contract, case=CASE, level="full", representative=True)
    found = check.judge(subject, seen, lambda dtype: check.limits(**limits))
    assert found, "the check is silent about the trial"
    return [(item.tensor, item.detail) for item in found if item.verdict is not Verdict.PASS]
