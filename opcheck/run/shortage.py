"""Notice that memory ran short, whoever caught what was raised then.

What a role raises becomes evidence in many places: a failure, a note, a refusal, a trial that is left out. Where it was
for want of memory that other workers had taken, none of that evidence counts. Imports no torch by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

# What CUDA, Triton's launcher, cuBLAS and cuDNN (the last of cuBLAS where it cannot make its handle), and the CPU's
# allocator say. A word too many costs a second look at a case, a word too few is a false alarm.
_WORDS = ("out of memory", "allocate memory", "alloc_failed", "cublas_status_not_initialized")


@dataclass(slots=True)
class Memory:
    """What a block was told about memory: whether it ran short."""

    short: bool = False


_WATCHED: ContextVar[Memory | None] = ContextVar("memory", default=None)


def is_shortage(error: BaseException) -> bool:
    """Say whether an exception is one of too little memory."""
    named = any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__)
    return named or isinstance(error, MemoryError) or _tells(str(error))


def notice(error: BaseException) -> None:
    """Note, for the block that watches, whether an exception or one that led to it is of too little memory."""
    memory = _WATCHED.get()
    if memory is not None:
        memory.short = memory.short or any(map(is_shortage, _led_to(error)))


def overhear(said: str) -> None:
    """Note, for the block that watches, whether another process's words are of too little memory."""
    memory = _WATCHED.get()
    if memory is not None:
        memory.short = memory.short or _tells(said)


@contextlib.contextmanager
def watched(backend: str) -> Iterator[Memory]:
    """Watch for shortages in the block: those that `notice` is told of, and on a GPU every one of torch's allocator."""
    memory = Memory()
    before = _refusals(backend)
    token = _WATCHED.set(memory)
    try:
        yield memory
    finally:
        _WATCHED.reset(token)
        memory.short = memory.short or _refusals(backend) > before


def _tells(said: str) -> bool:
    return any(word in said.lower() for word in _WORDS)


def _led_to(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes, and what was being handled when they were raised."""
    left, seen = [error], set[int]()
    while left:
        item = left.pop()
        if id(item) not in seen:
            seen.add(id(item))
            yield item
            left += [other for other in (item.__cause__, item.__context__) if other is not None]


def _refusals(backend: str) -> int:
    """Return how often torch's allocators have raised for want of memory in this process; they count on a GPU only."""
    if backend != "cuda":
        return 0
    import torch

    try:
        return sum(torch.cuda.memory_stats(at).get("num_ooms", 0) for at in range(torch.cuda.device_count()))
    except RuntimeError:  # an allocator that is not torch's own may not count
        return 0
