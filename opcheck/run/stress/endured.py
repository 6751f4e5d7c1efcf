"""Many calls in one process: the last one is as good as the first, and nothing is kept."""

from __future__ import annotations

import torch
from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.stress import Endured
from opcheck.run.comparison import Comparison, arguments, both_ways, forward, shortened
from opcheck.run.inputs import Call
from opcheck.run.roles import RoleFailed
from opcheck.run.stress.counting import Counter, aside

WARM = 6  # calls before the first count: caches, autotuning, freelists of Python and NumPy

OVERWRITTEN = "with other values written into the same tensors"
INTERLEAVED = "with another forward before the backward"


def endured(comparison: Comparison, *, steps: int, calls: int) -> Endured:
    """Call the op on the same values in ever new memory, then on other values in the same memory, then interleaved."""
    try:
        counter = _many(comparison, steps, calls)
        _overwritten(comparison)
        if not comparison.spec.mutated:
            _interleaved(comparison)
    except RoleFailed as failed:
        comparison.problem("the op", "", f"raises: {shortened(str(failed))}")
        return Endured(behaviour=comparison.behaviour())
    return Endured(behaviour=comparison.behaviour(), growth=counter.growth(calls))


def _many(comparison: Comparison, steps: int, calls: int) -> Counter:
    """Hold each call's inputs alive, so that no two calls have the same addresses, and hand out aliases of them.

    The first call that gives something else is told, and no more are compared.
    """
    case = comparison.case
    held = [arguments(comparison.spec, case, comparison.device) for _ in range(WARM + steps * calls)]
    # A storage gets its Python object when it is first asked for, and keeps it as long as the tensor lives.
    storages = [value.untyped_storage() for call in held for _, value in call.tensors()]
    comparison.usual(case)
    counter = Counter(comparison.device)
    with aside():
        for at, call in enumerate(held):
            comparison.tell()
            found = _seeded(comparison, case, alias(call))
            if not comparison.unlike:
                comparison.add(f"in call {at + 2}", found, case)
            if at >= WARM - 1 and not (at + 1 - WARM) % calls:
                counter.count()
    storages.clear()
    return counter


def _overwritten(comparison: Comparison) -> None:
    first, second = comparison.case, comparison.sibling()
    call, other = (arguments(comparison.spec, case, comparison.device) for case in (first, second))
    _seeded(comparison, first, call if comparison.spec.mutated else alias(call))
    with torch.no_grad():
        for (_, value), (_, new) in zip(call.tensors(), other.tensors(), strict=True):
            if value.shape == new.shape:
                value.copy_(new)
    if all(value.shape == new.shape for (_, value), (_, new) in zip(call.tensors(), other.tensors(), strict=True)):
        found = _seeded(comparison, second, alias(call))
        comparison.add(OVERWRITTEN, found, second)
        if not comparison.contract.random:
            # Golden has the last word: an ordinary run may find the same stale answer.
            comparison.judge(OVERWRITTEN, {name: value for name, value in found.items() if value is not None}, second)


def _interleaved(comparison: Comparison) -> None:
    cases = comparison.case, comparison.sibling()
    graphs = []
    for case in cases:
        comparison.tell()
        with comparison.seeded():
            graphs.append(forward(comparison.spec, case, arguments(comparison.spec, case, comparison.device)))
    for case, graph in zip(cases, graphs, strict=True):
        comparison.add(INTERLEAVED, {**graph.tensors, **graph.gradients()}, case)


def alias(call: Call) -> Call:
    """Return the call with new tensors on the same memory, so that one that is kept is one tensor more."""

    def again(name: str, value: Tensor) -> Tensor:
        return value.detach().requires_grad_(value.requires_grad)

    return call.map(again)


def _seeded(comparison: Comparison, case: Case, call: Call) -> dict[str, Tensor | None]:
    with comparison.seeded():
        return both_ways(comparison.spec, case, call)
