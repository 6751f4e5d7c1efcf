"""The transforms of `torch.func`: an op answers rightly under them, or raises."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opcheck.core.behaviour import Behaviour
from opcheck.core.case import Case
from opcheck.run.comparison import Comparison, arguments, shortened
from opcheck.run.inputs import Call
from opcheck.run.roles import cotangent, live_outputs, outputs_by_name

VJP, VMAP = "under torch.func.vjp", "under torch.func.vmap"


def transformed(comparison: Comparison) -> Behaviour:
    """Take a vector-Jacobian product, and run a batch of two samples at once; what raises is noted."""
    comparison.tell()
    try:
        found = _vjp(comparison)
    except Exception as error:
        comparison.note(f"{VJP} it raises: {shortened(str(error))}")
    else:
        comparison.add(VJP, found, comparison.case)
    if comparison.contract.random:
        return comparison.behaviour()
    cases = (comparison.case, comparison.sibling())
    try:
        batch = _vmap(comparison, cases)
    except Exception as error:
        comparison.note(f"{VMAP} it raises: {shortened(str(error))}")
        return comparison.behaviour()
    for at, case in enumerate(cases):
        usual = comparison.usual(case)
        found = {**usual, **{name: value[at] for name, value in batch.items()}}
        comparison.add(f"{VMAP}, sample {at} of 2", found, case)
    return comparison.behaviour()


def _vjp(comparison: Comparison) -> dict[str, Tensor | None]:
    case, spec = comparison.case, comparison.spec
    call = arguments(spec, case, comparison.device)
    leaves = [(name, value) for name, value in call.tensors() if value.requires_grad]
    # The outputs that carry a gradient are known from the ordinary graph: under the transform all look alike.
    given, _ = outputs_by_name(spec.target(*call.args, **call.kwargs), expected=True)
    live = live_outputs(given, case)

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        outputs, _ = outputs_by_name(_called(spec.target, _with(call, leaves, values)), expected=True)
        return tuple(outputs[name] for name in live)

    values = tuple(value.detach() for _, value in leaves)
    outputs, backward = torch.func.vjp(function, *values)[:2]
    gradients = backward(tuple(cotangent(case, "target", name, value) for name, value in live.items()))
    rest = {name: value.detach() for name, value in given.items() if name not in live}
    found = dict(zip(live, outputs, strict=True))
    return {**rest, **found, **{f"grad {name}": value for (name, _), value in zip(leaves, gradients, strict=True)}}


def _vmap(comparison: Comparison, cases: tuple[Case, ...]) -> dict[str, Tensor]:
    calls = [arguments(comparison.spec, case, comparison.device) for case in cases]
    names = [name for name, _ in calls[0].tensors()]
    stacked = [torch.stack([dict(call.tensors())[name].detach() for call in calls]) for name in names]
    pairs = [(name, value) for name, value in calls[0].tensors()]

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        outputs, _ = outputs_by_name(_called(comparison.spec.target, _with(calls[0], pairs, values)), expected=True)
        seen.extend(outputs)
        return tuple(outputs.values())

    seen: list[str] = []
    found = torch.func.vmap(function)(*stacked)
    return dict(zip(seen, found, strict=True))


def _called(target: Any, call: Call) -> Any:
    return target(*call.args, **call.kwargs)


def _with(call: Call, leaves: list[tuple[str, Tensor]], values: tuple[Tensor, ...]) -> Call:
    chosen = dict(zip((name for name, _ in leaves), values, strict=True))
    return call.map(lambda name, value: chosen.get(name, value))
