"""Replay an op from a CUDA graph: the kernels of one run, launched again on what now stands in its inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from opcheck.core.behaviour import Behaviour
from opcheck.run.comparison import Comparison, arguments, both_ways, forward, shortened

WARM = 3  # calls before the capture, as torch's notes on CUDA graphs advise


def captured(comparison: Comparison) -> Behaviour:
    """Capture forward and backward on a sibling's values, and replay them on the case's and on the sibling's.

    An op that asks the GPU for a value cannot be captured; CUDA raises then, and that is noted.
    """
    spec, first, device = comparison.spec, comparison.sibling(), comparison.device
    call = arguments(spec, first, device)
    comparison.tell()
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(WARM):
            both_ways(spec, first, arguments(spec, first, device))
    torch.cuda.current_stream(device).wait_stream(side)
    cotangents = forward(spec, first, arguments(spec, first, device)).cotangents()
    graph = torch.cuda.CUDAGraph()
    found: dict[str, Tensor | None] = {}
    try:
        with torch.cuda.graph(graph):
            made = forward(spec, first, call)
            found |= made.tensors
            if made.live:
                gradients = made.differentiate(cotangents, keep=False)
                found |= {f"grad {name}": value for name, value in gradients.items()}
    except Exception as error:
        comparison.note(f"it cannot be captured: {shortened(str(error))}")
        return comparison.behaviour()
    mutated = {name: value for name, value in call.tensors() if name.partition("[")[0] in spec.mutated}
    for case in (comparison.case, first):
        fresh = arguments(spec, case, device)
        values = [value.detach().clone() for _, value in fresh.tensors()]  # a mutating op overwrites its own
        upstream = forward(spec, case, fresh).cotangents()  # not under no_grad, where no output has a gradient
        with torch.no_grad():
            for (_, static), value in zip(call.tensors(), values, strict=True):
                static.copy_(value)
            for name, static in cotangents.items():
                static.copy_(upstream[name])
        graph.replay()
        torch.cuda.synchronize(device)
        kept = {name: None if value is None else value.clone() for name, value in {**found, **mutated}.items()}
        comparison.add("", kept, case)
    return comparison.behaviour()
