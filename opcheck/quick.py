"""The quick template: one callable against its reference, in this process, without a registry."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opcheck.auditor import audit_case
from opcheck.backends import interpreter
from opcheck.checks import all_checks
from opcheck.checks.protocol import Subject
from opcheck.core.building import COMPILE
from opcheck.core.case import Case, Dims, Sample
from opcheck.core.gate import gate
from opcheck.core.measure import dtype_name
from opcheck.core.policy import Contract, GatePolicy, Kind, Policy
from opcheck.core.report import AuditReport, OpReport
from opcheck.core.spec import OpSpec
from opcheck.core.stages import stages
from opcheck.core.verdict import worst
from opcheck.errors import AuditFailed, OpcheckError
from opcheck.registry import described
from opcheck.render import text
from opcheck.run.environment import environment
from opcheck.run.execute import Executor
from opcheck.run.inputs import seeded
from opcheck.run.oracle import promote
from opcheck.run.targets import looked_at

# What Triton says where it is to launch a compiled kernel on the CPU, or to interpret one with compiled functions.
_SIGNS = ("0 active drivers", "Cannot call @triton.jit'd outside of the scope of a kernel")
_TOO_LATE = (
    "verify: the arguments are on the CPU, and Triton was imported without TRITON_INTERPRET=1, which it reads only "
    "then; start again with os.environ['TRITON_INTERPRET'] = '1' before triton is imported, or give tensors on a GPU"
)


def verify(
    target: Callable[..., Any],
    reference: Callable[..., Any],
    args_or_samples: Sequence[Any] | Sample | Callable[[Case], Sample],
    *,
    golden: Callable[..., Any] | None = None,
    dims: Mapping[str, int] | None = None,
    dtypes: Sequence[str] = ("float32",),
    values: Sequence[str] = ("normal",),
    kind: Kind = "elementwise",
    reduces: Sequence[str] = (),
    no_grad: Sequence[str] = (),
    deterministic: bool = True,
    seed: int = 0,
    quiet: bool = False,
    raises: bool = True,
) -> AuditReport:
    """Compare one callable with its reference, forward and backward, print the table, and raise if it is wrong.

    Args:
        target: The kernel's entry point; differentiable by autograd where it has a backward.
        reference: Eager PyTorch, the same element types in and out.
        args_or_samples: The arguments of one call, as a tuple, list or `opcheck.Sample`; or a function from `Case` to
            `Sample`, with `dims`.
        golden: The same formula in FP64; None promotes the reference.
        dims: Sizes by name, for `samples`.
        dtypes, values: Element types and families of values to draw, for `samples`.
        kind, reduces, no_grad, deterministic: As in `registry.toml`.
        quiet: Print nothing.
        raises: Whether a verdict that may not ship raises.

    Returns:
        The report, one case per element type and family.

    Raises:
        AuditFailed: FAIL or INCONCLUSIVE, and `raises`; the message is the report.
        OpcheckError: The arguments hold no tensor, an element type cannot be judged here, or a Triton kernel is to run
            on the CPU that was defined when TRITON_INTERPRET was not set.
    """
    found = looked_at(target)
    name = f"verify::{found.name.rpartition('::')[2].partition('.')[0] or 'target'}"
    given = None if callable(args_or_samples) else _sample(args_or_samples)
    if given is not None:
        tensors = [item for item in (*given.args, *given.kwargs.values()) if isinstance(item, Tensor)]
        floats = [item for item in tensors if item.dtype.is_floating_point]
        if not floats:
            raise OpcheckError("verify: the arguments hold no floating-point tensor to judge by")
        dtypes, device = (dtype_name(floats[0].dtype),), floats[0].device
    else:
        device = torch.device("cuda" if torch.cuda.is_available() and not _interpreted() else "cpu")
    _refuse(dtypes, device)
    spec = replace(
        described(found, name),
        reference=reference,
        golden=golden or promote(reference),
        samples=_samples_from(given) if given is not None else args_or_samples,  # type: ignore[arg-type]
        promoted=golden is None,
    )
    contract = Contract(
        name=name, kind=kind, dtypes=tuple(dtypes), dims=tuple(dims or ()), reduces=tuple(reduces),
        no_grad=dict.fromkeys(no_grad, "said to verify"),
        deterministic_forward=deterministic, deterministic_backward=deterministic,
    )  # fmt: skip
    cases = [
        Case(op=name, dtype=dtype, dims=Dims(dims or {}), values=family, seed=seed, backend=device.type)
        for dtype in dtypes
        for family in (values if given is None else ("normal",))
    ]
    report = _audit(spec, contract, cases, device)
    _refuse_compiled(report, device)
    printed = text.render(report)
    if not quiet:
        print(printed)
    if raises and not report.ok:
        raise AuditFailed(
            f"{name}: {report.verdict}\n{printed}" if quiet else f"{name}: {report.verdict}, as printed above"
        )
    return report


def _audit(spec: OpSpec, contract: Contract, cases: Sequence[Case], device: torch.device) -> AuditReport:
    policy = Policy(ops={contract.name: contract})
    executor = Executor(spec, contract, device, lambda case, label, role: None)
    reports = tuple(
        audit_case(
            Subject(
                contract=contract,
                case=case,
                representative=True,
                mutated=spec.mutated,
                registered=spec.op is not None,
                fake=spec.fake,
            ),
            {name: check for name, check in all_checks().items() if name != COMPILE},  # it needs workers of its own
            policy,
            executor,
        )
        for case in cases
    )
    found = environment(device.type)
    op = OpReport(
        op=contract.name,
        verdict=worst(case.verdict for case in reports),
        backend=found["device"],
        cases=reports,
        limitations=("golden is the reference promoted to float64: it shares any mistake of the formula",)
        if spec.promoted
        else (),
        not_covered=spec.not_covered,
        stages=stages(contract, reports),
        kind=contract.kind,
        place=str(spec.place),
    )
    result = gate((op,), GatePolicy())
    return AuditReport(ops=(op,), verdict=result.verdict, exit_status=int(result.exit_status), environment=found)


def _sample(given: Sequence[Any] | Sample) -> Sample:
    return given if isinstance(given, Sample) else Sample(*given)


def _samples_from(given: Sample) -> Callable[[Case], Sample]:
    """Return samples that give the arguments as they are for the first seed, and their values shuffled for others.

    Shuffling keeps each tensor's distribution, which is all that the reference's error is measured over.
    """
    first: list[int] = []

    def change(value: Any, case: Case, label: str) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(change(item, case, f"{label} {at}") for at, item in enumerate(value))
        if not isinstance(value, Tensor):
            return value
        copy = value.detach().clone()
        if case.seed == first[0] or not value.dtype.is_floating_point:
            return copy
        order = torch.randperm(copy.numel(), generator=seeded(f"{case.seed} {label}"))
        return copy.reshape(-1)[order.to(copy.device)].reshape(copy.shape)

    def samples(case: Case) -> Sample:
        if not first:
            first.append(case.seed)
        args = [change(value, case, str(at)) for at, value in enumerate(given.args)]
        return Sample(*args, **{name: change(value, case, name) for name, value in given.kwargs.items()})

    return samples


def _refuse(dtypes: Sequence[str], device: torch.device) -> None:
    if device.type != "cpu" or not _interpreted():
        return
    interpreter.install()
    for dtype in dtypes:
        if why := interpreter.trusted(dtype):
            if _compiled(why):
                raise OpcheckError(_TOO_LATE)
            raise OpcheckError(f"verify: no verdict on {dtype} on this machine: {why}")


def _refuse_compiled(report: AuditReport, device: torch.device) -> None:
    """Say how to run Triton on the CPU where the target did not, for want of the interpreter: that is no verdict."""
    said = (item.detail for op in report.ops for case in op.cases for item in case.findings)
    if device.type == "cpu" and any(_compiled(detail) for detail in said):
        raise OpcheckError(_TOO_LATE)


def _compiled(said: str) -> bool:
    return any(sign in said for sign in _SIGNS)


def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")
