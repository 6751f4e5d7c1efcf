"""Run a few programs of each launch, and know which elements of the results are as if all had run.

What a program stores counts. It does not where the program has read what it could only have from one that was left
out, or has met others by atomics: its stores are kept back from then on, and count as never written, for the host and
for later launches.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor
from triton.runtime import interpreter

from opcheck.backends.interpreter import wraps
from opcheck.backends.interpreter.dtypes import Array
from opcheck.backends.interpreter.launch import tensors_of, watching
from opcheck.backends.interpreter.memory import Access, observing
from opcheck.backends.interpreter.observer import Observer
from opcheck.backends.interpreter.regions import elements_of
from opcheck.backends.virtual import zeros
from opcheck.core.sampling import Program, chosen_programs

#: Loads, stores and atomics of a run; programs that make more of them loop over what the sample was to leave out.
MOST_ACCESSES = 2500


class TooMany(Exception):
    """The programs of a sample do more than a sample should."""


@dataclass(slots=True)
class _Memory:
    """One storage.

    Attributes:
        kept: A view of it, so that its address is not handed out again.
        complete: Whether what no launch stored is as it should be.
        written: The bytes that a program whose stores count has stored, `[size]` of bool.
        stored: Whether the launch that runs has stored there.
    """

    kept: Tensor
    complete: bool
    start: int = 0
    size: int = 0
    written: Array = field(init=False)
    stored: bool = False

    def __post_init__(self) -> None:
        storage = self.kept.untyped_storage()
        self.start, self.size = storage.data_ptr(), storage.nbytes()
        self.written = zeros(self.size, np.bool_)


class Sampler:
    """Watches a run of which each launch has a few programs, with an observer for what they do to memory.

    Attributes:
        launches: Kernel, programs that ran, and programs of the grid, of each launch.
        skipped: Whether any program was left out.
        stopped: Whether the run was ended because its programs do too much.
        dependent: Kernels whose stores were kept back, because they read what programs that were left out write.
    """

    def __init__(self, observer: Observer, count: int, seed: int) -> None:
        self._observer, self._count, self._seed = observer, count, seed
        self.launches: list[tuple[str, int, int]] = []
        self.skipped = False
        self.stopped = False
        self._accesses = 0
        self.dependent: dict[str, None] = {}
        self._memories: dict[int, _Memory] = {}
        self._lost: set[Program] = set()
        self._kernel, self._partial = "", False

    def keep(self, name: str, tensor: Tensor, *, writable: bool = False, given: bool = True) -> None:
        """Learn of a tensor of the case."""
        self._observer.keep(name, tensor, writable=writable, given=given)
        if given:
            self._memory(tensor, complete=True)

    def allocated(self, tensor: Tensor, byte: int) -> None:
        """Learn of uninitialised memory that the op has allocated."""
        self._memories.pop(tensor.untyped_storage().data_ptr(), None)
        self._memory(tensor, complete=False)

    def covered(self, tensor: Tensor) -> Array:
        """Return which elements of a result are as if all programs had run, `[n]` of bool in its order."""
        if not self.skipped:
            return np.ones(tensor.numel(), np.bool_)
        memory = self._memories.get(tensor.untyped_storage().data_ptr())
        if memory is None:
            return np.zeros(tensor.numel(), np.bool_)
        found: Array = memory.written[elements_of(tensor) * tensor.element_size()]
        return found

    @contextlib.contextmanager
    def launched(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        """Be around one launch, and have it run a few of its programs."""
        for _, tensor in tensors_of(executor, args, kwargs):
            # What nobody has told of is the host's work; it may have come from a launch that was not whole.
            self._memory(tensor, complete=not self.skipped)
        self._kernel, self._lost, self._partial = executor.fn.__name__, set(), False
        with self._observer.launched(executor, args, kwargs), self._fewer(executor):
            yield
        for memory in self._memories.values():
            if memory.stored and (self._partial or self._lost):
                memory.complete = False
            memory.stored = False
        self.skipped |= self._partial

    @contextlib.contextmanager
    def _fewer(self, executor: Any) -> Iterator[None]:
        builder, grid = interpreter.interpreter_builder, executor.grid
        plain_dim, plain_idx = builder.set_grid_dim, builder.set_grid_idx
        whole: list[int] = []
        programs: list[Program] = []

        def fewer(arguments: Any) -> tuple[int]:
            found = grid(arguments) if callable(grid) else grid
            whole.extend((*map(int, found), *(1,) * (3 - len(found))))
            x, y, z = whole
            programs.extend(chosen_programs((x, y, z), self._count, self._seed))
            self.launches.append((self._kernel, len(programs), math.prod(whole)))
            self._partial = len(programs) < math.prod(whole)
            return (len(programs),)

        executor.grid = fewer
        builder.set_grid_dim = lambda *dims: plain_dim(*whole)
        builder.set_grid_idx = lambda x, y, z: plain_idx(*programs[x])
        try:
            yield
        finally:
            executor.grid = grid
            del builder.set_grid_dim, builder.set_grid_idx

    def see(self, access: Access) -> Array:
        """Look at one access, and return the lanes of its mask that may go on.

        Raises:
            TooMany: It is one more than a sample may make.
        """
        self._accesses += 1
        if self._accesses > MOST_ACCESSES:
            self.stopped = True
            raise TooMany(f"the chosen programs make more than {MOST_ACCESSES} accesses")
        admitted = np.broadcast_to(self._observer.see(access), access.pointers.shape)
        lanes = access.pointers[admitted]
        if not lanes.size:
            return admitted
        memory = self._memory_of(access, int(lanes[0]))
        program = tuple(interpreter.interpreter_builder.grid_idx)
        lost = memory is None or (access.kind == "atomic" and self._partial)
        if memory is not None:
            offsets = (lanes - np.uint64(memory.start)).view(np.int64)
            if self.skipped or self._partial:
                lost |= access.kind != "store" and not memory.complete and not memory.written[offsets].all()
        if lost and program not in self._lost:
            self._lost.add(program)
            self.dependent[self._kernel] = None
        if memory is None or access.kind == "load":
            return admitted
        memory.stored = True
        counts = program not in self._lost
        for byte in range(access.itemsize):
            memory.written[offsets + byte] = counts
        return admitted if counts else np.zeros(admitted.shape, np.bool_)

    def _memory(self, tensor: Tensor, *, complete: bool) -> None:
        if tensor.device.type == "cpu" and (size := tensor.untyped_storage().nbytes()):
            start = tensor.untyped_storage().data_ptr()
            known = self._memories.get(start)
            if known is None or known.size != size:
                self._memories[start] = _Memory(tensor.detach(), complete)

    def _memory_of(self, access: Access, address: int) -> _Memory | None:
        if access.origin is not None:
            return self._memories.get(access.origin[0])
        inside = (item for item in self._memories.values() if item.start <= address < item.start + item.size)
        return next(inside, None)


@contextlib.contextmanager
def sampled(extent: Collection[str], count: int, seed: int) -> Iterator[tuple[Sampler, Observer]]:
    """Run at most `count` programs of every interpreted launch inside the block, and observe them."""
    observer = Observer(extent)
    sampler = Sampler(observer, count, seed)
    with observing(sampler.see), watching(sampler.launched), wraps.followed():
        yield sampler, observer
