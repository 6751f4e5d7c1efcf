"""Streams and devices of a GPU: a kernel runs where its tensors are, and after what was to come before it."""

from __future__ import annotations

import torch

from opcheck.core.behaviour import Behaviour
from opcheck.run.comparison import Comparison, arguments, both_ways, shortened
from opcheck.run.roles import RoleFailed

LOAD = 4096  # rows and columns of the matrices that keep the other stream busy
TIMES = 20  # products on the busy stream, beside each run
RUNS = 3


def on_streams(comparison: Comparison) -> Behaviour:
    """Run on a stream that is not the default one, then so while another stream multiplies matrices.

    The inputs are made on the same stream, so that a kernel launched elsewhere reads them too early.
    """
    spec, case, device = comparison.spec, comparison.case, comparison.device
    comparison.usual(case)
    own, busy = (torch.cuda.Stream(device) for _ in range(2))  # type: ignore[no-untyped-call]
    for when, times in (("on a stream of its own", 0), ("beside a busy stream", TIMES)):
        for _ in range(RUNS):
            comparison.tell()
            torch.cuda.synchronize(device)
            with torch.cuda.stream(busy):
                load = torch.ones((LOAD, LOAD), device=device, dtype=torch.float16)
                for _ in range(times):
                    load = load @ load
            try:
                with torch.cuda.stream(own):
                    found = both_ways(spec, case, arguments(spec, case, device))
            except RoleFailed as failed:
                comparison.problem("the op", when, f"raises: {shortened(str(failed))}")
                return comparison.behaviour()
            torch.cuda.synchronize(device)
            comparison.add(when, found, case)
    return comparison.behaviour()


def on_second_device(comparison: Comparison) -> Behaviour:
    """Run on tensors of another GPU than the current one, as the layers of a model spread over several do."""
    here = torch.device("cuda", torch.cuda.current_device())
    others = [at for at in range(torch.cuda.device_count()) if at != here.index]
    if not others:
        return comparison.behaviour("a second device: this machine shows one GPU")
    spec, case, there = comparison.spec, comparison.case, torch.device("cuda", others[0])
    when = f"on {there} while the current device is {here}"
    comparison.usual(case)
    comparison.tell()
    try:
        found = both_ways(spec, case, arguments(spec, case, there))
    except RoleFailed as failed:
        comparison.problem("the op", when, f"raises: {shortened(str(failed))}")
        return comparison.behaviour()
    torch.cuda.synchronize(there)
    for name, value in found.items():
        if value is not None and value.device != there:
            comparison.problem(name, when, f"is on {value.device}")
    moved = {name: None if value is None else value.to(here) for name, value in found.items()}
    comparison.add(when, moved, case)
    return comparison.behaviour()
