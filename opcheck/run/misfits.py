"""Which tensors of a run have the wrong form or are missing, and whose fault that is."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from opcheck.core.measure import dtype_name
from opcheck.core.outcome import Misfit
from opcheck.core.policy import Contract
from opcheck.run.roles import Run


def misfits_of_oracles(reference: Run, golden: Run) -> tuple[Misfit, ...]:
    """Return what is wrong with the form of golden's and reference's tensors, before any target is looked at."""
    odd = tuple(
        Misfit(tensor="out", problem=f"{role} {text}", role="reference")
        for role, run in (("golden", golden), ("reference", reference))
        for text in run.odd
    )
    return odd or (*_against_golden(reference, golden),)


def _against_golden(reference: Run, golden: Run) -> Iterable[Misfit]:
    """A reference whose tensors are not shaped as golden's cannot be judged by."""
    for name in {**golden.outputs, **reference.outputs, **golden.mutated}:
        f, g = reference.tensors.get(name), golden.tensors.get(name)
        if f is None or g is None:
            missing = "reference" if f is None else "golden"
            problem = f"{missing} does not return it; reference and golden must return the same tensors"
            yield Misfit(tensor=name, problem=problem, role="reference")
        elif f.shape != g.shape:
            problem = f"reference gives shape {list(f.shape)}, golden {list(g.shape)}"
            yield Misfit(tensor=name, problem=problem, role="reference")


def misfits_of_target(target: Run, reference: Run, golden: Run, contract: Contract) -> Iterable[Misfit]:
    """Yield each tensor of the target that is missing, or has not the form that the reference gives it."""
    for text in target.odd:
        yield Misfit(tensor="out", problem=f"the target {text}")
    if target.odd:
        return
    if len(target.outputs) != len(reference.outputs):
        problem = f"the target returns {len(target.outputs)} outputs, the reference {len(reference.outputs)}"
        if target.mutated:
            problem += f"; a mutating op's reference and golden, too, write into {', '.join(target.mutated)}"
        yield Misfit(tensor="out", problem=problem)
    elif other := sorted({*target.outputs} ^ {*reference.outputs}):
        given, wanted = ", ".join(target.outputs), ", ".join(reference.outputs)
        problem = f"the target returns {given}, the reference {wanted}; the others are None"
        yield Misfit(tensor=other[0], problem=problem)
    for name, value in {**target.outputs, **target.mutated}.items():
        expected = reference.tensors.get(name)
        if expected is not None:
            yield from _form(name, value, expected)
    if target.backward is not None:
        for name in golden.gradients:
            if not _excused(name, contract):
                yield Misfit(tensor=name, problem=str(target.backward))
        return
    for name, truth in golden.gradients.items():
        gradient = target.gradients.get(name)
        if gradient is None and truth is not None and not _excused(name, contract):
            yield Misfit(tensor=name, problem=_missing_gradient(target))
        elif gradient is not None and (expected := reference.gradients.get(name)) is not None:
            yield from _form(name, gradient, expected)


def _excused(name: str, contract: Contract) -> bool:
    """Say whether the contract declares that this gradient, `"grad x"` or `"grad xs[0]"`, is not given."""
    return name.removeprefix("grad ").partition("[")[0] in contract.no_grad


def _missing_gradient(target: Run) -> str:
    if target.detached:
        return f"no gradient: {', '.join(target.detached)} of the target does not require grad, golden's does"
    return "no gradient: the target's backward returns None where golden's is a tensor; declare no_grad if it is meant"


def _form(name: str, value: Tensor, expected: Tensor) -> Iterable[Misfit]:
    for what, have, want in (
        ("shape", list(value.shape), list(expected.shape)),
        ("dtype", dtype_name(value.dtype), dtype_name(expected.dtype)),
        ("device", value.device.type, expected.device.type),
    ):
        if have != want:
            yield Misfit(tensor=name, problem=f"{what} {have} should be {want}, as the reference gives it")
            return
