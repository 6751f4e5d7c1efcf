"""Inputs that fill a share of the device's memory: sizes and offsets that no small case has."""

from __future__ import annotations

import torch
from torch import Tensor

from opcheck.core.behaviour import Behaviour
from opcheck.core.case import LEADING, Case
from opcheck.core.policy import Contract
from opcheck.core.shapes import named, reduced
from opcheck.run.comparison import Comparison, Found, arguments, forward, shortened
from opcheck.run.inputs import Call
from opcheck.run.roles import RoleFailed, answer, setting

LIKE = 0.05  # of the largest value: parts that differ by no more are the same one, rounded in another order
COPIES = 8  # times the inputs' bytes that a run takes: inputs, outputs, upstream and other gradients, temporaries


def large(comparison: Comparison, share: float, *, free: int | None = None) -> Behaviour:
    """Run a batch that takes a share of the free memory, and compare its first and its last part with the case.

    The batch is the case's own, repeated, and so is its upstream gradient: every part must give what the case gives.
    Gradients that are summed over the batch are not compared.

    Args:
        free: Bytes that are free; what the device says unless given.
    """
    spec, case, device = comparison.spec, comparison.case, comparison.device
    call = arguments(spec, case, device)
    name = batch_of(comparison.contract, call)
    if not name:
        return comparison.behaviour("large inputs: no dimension of the contract is the first one of all that have it")
    batched = {tensor for tensor, (_, dims) in call.drawn.items() if name in dims}

    def repeated(count: int) -> Call:
        return call.map(lambda at, value: _repeated(value, count) if at in batched else value)

    if comparison.contract.random or not _separable(comparison, call, repeated(2)):
        return comparison.behaviour("large inputs: what the op gives for a sample depends on its place in the batch")
    one = sum(value.nbytes for tensor, value in call.tensors() if tensor in batched)
    room = torch.cuda.mem_get_info(device)[0] if free is None else free
    times = _times(comparison.contract, case, name, int(room * share) // max(COPIES * one, 1))
    when = f"with {name}={case.dims[name] * times}"
    usual = comparison.usual(case)
    comparison.tell()
    try:
        found = _run(comparison, repeated(times), times)
    except (RoleFailed, torch.OutOfMemoryError) as failed:
        comparison.problem("the op", when, f"raises: {shortened(str(failed))}")
        return comparison.behaviour()
    for part, at in (("the first part", 0), ("the last part", times - 1)):
        comparison.add(f"{when}, {part}", {**usual, **_part(found, usual, at, times)}, case)
    return comparison.behaviour()


def batch_of(contract: Contract, call: Call) -> str:
    """Return a dimension along which samples are independent: not reduced, and first wherever it occurs; else `""`.

    What integers without the dimension may count along, such as the rows of a table, is none.
    """
    drawn = {name for name, _ in call.tensors()} <= call.drawn.keys()
    if not drawn or any(kind == "offsets" for kind, _ in call.drawn.values()):
        return ""
    asked = [(kind, _own(dims, call)) for kind, dims in call.drawn.values()]
    counted = [dims for kind, dims in asked if kind == "integer"]
    for name in named(contract):
        free = name not in reduced(contract) and name not in contract.sizes and all(name in dims for dims in counted)
        places = [dims.index(name) for _, dims in asked if name in dims]
        if free and places and not any(places):
            return name
    return ""


def _separable(comparison: Comparison, call: Call, twice: Call) -> bool:
    """Say whether the reference gives for a batch of two copies, about, what it gives for one.

    A mask drawn by seed and place, or an encoding of positions, makes each part of a batch another one.
    """
    spec = comparison.spec
    comparison.tell("reference")
    given = [item.map(lambda name, value: value.detach().clone()) for item in (call, twice)]
    with setting("reference", spec.dispatched):
        one, two = (answer(spec, "reference", item)[0] for item in given)
    return all(_alike(value, two[name]) for name, value in one.items() if _whole(two[name], value, 2))


def _alike(one: Tensor, two: Tensor) -> bool:
    """Say whether both halves of `two` are about `one`."""
    wide = one.double()
    largest = float(wide.abs().nan_to_num(0.0, 0.0, 0.0).max()) if wide.numel() else 0.0
    halves = two.double().reshape(2, *one.shape)
    return torch.allclose(halves, wide.expand_as(halves), rtol=LIKE, atol=LIKE * largest, equal_nan=True)


def _own(dims: tuple[str, ...], call: Call) -> tuple[str, ...]:
    """Return the dimensions that a tensor has: where a case has no leading ones, `...` stands for none."""
    leading = any(axis.startswith(LEADING) for axes in call.axes.values() for axis in axes)
    return dims if leading else tuple(dim for dim in dims if dim != LEADING)


def _times(contract: Contract, case: Case, name: str, wanted: int) -> int:
    size = case.dims[name]
    return max(1, min(wanted, contract.largest.get(name, wanted * size) // size))


def _repeated(value: Tensor, times: int) -> Tensor:
    return value.detach().repeat(times, *([1] * (value.dim() - 1))).requires_grad_(value.requires_grad)


def _run(comparison: Comparison, call: Call, times: int) -> dict[str, Tensor | None]:
    """Run the batch under the upstream gradient of the case, repeated where the output is."""
    spec, case = comparison.spec, comparison.case
    small = forward(spec, case, arguments(spec, case, comparison.device)).cotangents()
    graph = forward(spec, case, call)
    mutated = {name: value for name, value in call.tensors() if name.partition("[")[0] in spec.mutated}
    found: dict[str, Tensor | None] = {**graph.tensors, **mutated}
    if graph.live and all(_whole(graph.live[name], value, times) for name, value in small.items()):
        wide = {name: _repeated(value, times) for name, value in small.items()}
        found |= {f"grad {name}": value for name, value in graph.differentiate(wide, keep=False).items()}
    return found


def _part(found: Found, usual: Found, at: int, times: int) -> dict[str, Tensor | None]:
    """Return one part of everything that repeats with the batch."""
    parts: dict[str, Tensor | None] = {}
    for name, value in found.items():
        before = usual.get(name)
        if value is not None and before is not None and _whole(value, before, times):
            rows = before.shape[0]
            parts[name] = value[at * rows : (at + 1) * rows].clone()
    return parts


def _whole(value: Tensor, part: Tensor, times: int) -> bool:
    """Say whether a tensor is `times` parts along its first dimension."""
    return bool(part.dim()) and value.shape == (part.shape[0] * times, *part.shape[1:])
