"""Count what a process holds: tensors, Python objects, and bytes of host and device memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from array import array
from collections.abc import Iterator
from functools import cache
from operator import sub
from typing import Any, Literal

import torch
from torch import Tensor

from opcheck.core.stress import Counted, Growth

_FIELDS = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc's malloc.h."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


class Counter:
    """Count at the beginning and after each step; what was there before does not matter."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # Arrays: a list of numbers would itself be more Python objects after each count.
        self._levels: dict[Counted, array[int]] = {}

    def count(self) -> None:
        """Count now, after everything that can be freed has been."""
        gc.collect()
        for what, level in self._now():
            self._levels.setdefault(what, array("q")).append(level)

    def growth(self, count: int, per: Literal["call", "shape"] = "call") -> tuple[Growth, ...]:
        """Return how each count grew from step to step, a step being `count` calls or shapes."""
        return tuple(
            Growth(what=what, steps=tuple(map(sub, levels[1:], levels)), count=count, per=per)
            for what, levels in self._levels.items()
        )

    def _now(self) -> Iterator[tuple[Counted, int]]:
        objects = gc.get_objects()
        yield "live tensors", sum(issubclass(type(item), Tensor) for item in objects)
        yield "Python objects", len(objects)
        if (allocator := _allocator()) is not None:
            info = allocator()
            yield "bytes of host memory", int(info.uordblks + info.hblkhd)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            yield "bytes of device memory", int(torch.cuda.memory_allocated(self._device))


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Keep what is there already out of the counts and the collector's way, which makes counting 20 times faster."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@cache
def _allocator() -> Any:
    """Return glibc's `mallinfo2`, which tells bytes in use and not the pages that hold them; None elsewhere."""
    found = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if found is not None:
        found.restype = _Mallinfo
    return found
