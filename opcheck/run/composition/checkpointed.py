"""What happens to an op's saved tensors between forward and backward: recomputed, or moved away and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from opcheck.core.behaviour import Behaviour
from opcheck.core.case import Case
from opcheck.core.layouts import layout_text
from opcheck.run.comparison import Comparison, arguments, forward, shortened, through
from opcheck.run.failure import describe
from opcheck.run.graphs import Graph
from opcheck.run.roles import RoleFailed, setting

_UNLIKE = "transposed"  # a layout that a contiguous copy does not keep


def checkpointed(comparison: Comparison, *, reentrant: bool) -> Behaviour:
    """Recompute the forward in the backward, after a forward on other values, as in a model of several layers."""
    spec = comparison.spec

    def target(*args: Any, **kwargs: Any) -> Any:
        # Keywords are bound first: the reentrant variant takes none.
        return checkpoint(lambda *given: spec.target(*given, **kwargs), *args, use_reentrant=reentrant)

    comparison.tell()
    try:
        with comparison.seeded():
            graph = _graph(comparison, through(spec, target), comparison.case)
            _graph(comparison, spec, comparison.sibling())
            found = {**graph.tensors, **_accumulated(graph)}
    except RoleFailed as failed:
        comparison.problem("the op", "", f"raises: {shortened(str(failed))}")
        return comparison.behaviour()
    comparison.add("", found, comparison.case)
    return comparison.behaviour()


def packed(comparison: Comparison) -> Behaviour:
    """Move saved tensors to the CPU and back: what comes back is equal, contiguous, and elsewhere in memory."""
    for case in (comparison.case, *_transposed(comparison)):
        when = f"with {case.layout}" if case.layout else ""
        comparison.tell()
        try:
            with torch.autograd.graph.saved_tensors_hooks(_pack, _unpack):
                found = comparison.run(comparison.spec, case)
            comparison.add(when, found, case)
        except RoleFailed as failed:
            comparison.problem("the op", when, f"raises: {shortened(str(failed))}")
    return comparison.behaviour()


def _pack(tensor: Tensor) -> tuple[torch.device, Tensor]:
    """Copy as `torch.autograd.graph.save_on_cpu` does, which keeps no strides; on the CPU, too, a copy."""
    copy = torch.empty(tensor.size(), dtype=tensor.dtype, device="cpu")
    return tensor.device, copy.copy_(tensor.detach())


def _unpack(kept: tuple[torch.device, Tensor]) -> Tensor:
    device, tensor = kept
    return tensor.to(device)


def _transposed(comparison: Comparison) -> tuple[Case, ...]:
    """Return the case with all inputs transposed that may be, none where an input must be contiguous."""
    call = arguments(comparison.spec, comparison.case, comparison.device)
    names = [name for name, value in call.tensors() if value.dim() > 1 and value.dtype.is_floating_point]
    if not names or any(name.partition("[")[0] in comparison.contract.contiguous for name in names):
        return ()
    return (replace(comparison.case, layout=layout_text(dict.fromkeys(names, _UNLIKE))),)


def _graph(comparison: Comparison, spec: Any, case: Case) -> Graph:
    return forward(spec, case, arguments(spec, case, comparison.device))


def _accumulated(graph: Graph) -> dict[str, Tensor | None]:
    """Go backward as a training step does, into `.grad`: the reentrant variant knows no other way.

    Raises:
        RoleFailed: The backward raised.
    """
    cotangents = graph.cotangents()
    try:
        with setting("target", graph.spec.dispatched):
            if graph.live:
                torch.autograd.backward(list(graph.live.values()), [cotangents[name] for name in graph.live])
    except (Exception, SystemExit) as error:
        raise RoleFailed(describe(error, "target", "backward")) from error
    return {f"grad {name}": value.grad for name, value in graph.leaves.items()}
