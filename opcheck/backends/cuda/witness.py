"""Which kernels ran: Triton's by its own launch hook, all others by torch's profiler."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from opcheck.core.guards import Kernel, counted

_DEVICE = "CUDA"  # the name of the device type of a kernel's event
_CANARY = "the profiler showed no kernel, not even one that was launched for it to see"


@dataclass(slots=True, kw_only=True)
class Profile:
    """The device kernels of a block, filled at its end; `unseen` says why they are not known."""

    found: tuple[Kernel, ...] = ()
    unseen: str = ""


@contextlib.contextmanager
def hooked() -> Iterator[Counter[str]]:
    """Count the launches of compiled Triton kernels in the block, by name; interpreted ones call no hook."""
    import triton

    found: Counter[str] = Counter()

    def enter(metadata: Any) -> None:
        data = metadata.get() if hasattr(metadata, "get") else {}
        found[str(data.get("name", "a Triton kernel"))] += 1

    runtime = getattr(getattr(triton, "knobs", None), "runtime", None)
    chain = getattr(runtime, "launch_enter_hook", None)
    if chain is None or not hasattr(chain, "add"):
        yield found  # a Triton without a chain of hooks: the recorded launches are all there is
        return
    chain.add(enter)
    try:
        yield found
    finally:
        chain.remove(enter)


@contextlib.contextmanager
def profiled() -> Iterator[Profile]:
    """Profile the kernels that run on the GPU in the block.

    One kernel of torch is launched first: a profiler that does not even show that one sees nothing.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    result = Profile()
    try:
        profiler: Any = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        profiler.__enter__()
    except RuntimeError as error:
        result.unseen = f"the profiler does not start: {error}"
        yield result
        return
    try:
        torch.zeros(1, device="cuda").add_(1)
        yield result
        torch.cuda.synchronize()
    finally:
        profiler.__exit__(None, None, None)
    every = kernels_of(profiler.events() or ())
    result.found = every
    result.unseen = "" if every else _CANARY


def kernels_of(events: Iterable[Any]) -> tuple[Kernel, ...]:
    """Return the device kernels in a profile's events, each with the innermost torch operator that launched it.

    An operator's event lists the kernels that were launched below it and below no inner operator; a kernel that no
    operator launched has an event of its own alone.
    """
    below: Counter[tuple[str, str]] = Counter()
    alone: Counter[str] = Counter()
    for event in events:
        if _on_device(event):
            alone[event.name] += 1
        else:
            below.update((kernel.name, event.name) for kernel in event.kernels)
    for (name, _), count in below.items():
        alone[name] -= count
    found = [*below.elements(), *((name, "") for name in alone.elements())]
    return counted(found)


def _on_device(event: Any) -> bool:
    """Say whether an event is of a kernel; ranges that users mark are mirrored on the device, too."""
    return event.device_type.name == _DEVICE and not getattr(event, "is_user_annotation", False)
