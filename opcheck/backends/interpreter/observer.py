"""Look at every load, store and atomic of interpreted kernels before it happens.

What leaves an argument's memory is kept back, as `opcheck.backends.interpreter.guard` does in all other runs.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from triton.runtime import interpreter

from opcheck.backends.interpreter import origins, wraps
from opcheck.backends.interpreter.dtypes import Array, bits
from opcheck.backends.interpreter.launch import tensors_of, watching
from opcheck.backends.interpreter.memory import Access, observing
from opcheck.backends.interpreter.places import Place
from opcheck.backends.interpreter.places import place as place_of
from opcheck.backends.interpreter.races import Clock, Races
from opcheck.backends.interpreter.regions import Region
from opcheck.core.memory import Breach, Observed, Program, Rule


@dataclass(slots=True)
class _Launch:
    """One launch while it runs: its arguments' memory, and who did what."""

    kernel: str
    regions: dict[int, Region]
    names: dict[tuple[int, int], str]
    grains: dict[int, int]
    clock: Clock = field(default_factory=Clock)
    races: dict[int, Races] = field(default_factory=dict)
    programs: dict[Program, int] = field(default_factory=dict)
    history: list[tuple[Program, Place, str]] = field(default_factory=list)
    starts: Array = field(init=False)
    order: list[Region] = field(init=False)

    def __post_init__(self) -> None:
        self.order = sorted(self.regions.values(), key=lambda region: region.start)
        self.starts = np.array([region.start for region in self.order], np.uint64)

    def name(self, region: Region, origin: tuple[int, int] | None) -> tuple[str, int]:
        """Return the argument that an access is to, and the byte offset of its first element in its storage."""
        key = origin if origin in self.names else next(key for key in self.names if key[0] == region.start)
        return self.names[key], max(0, key[1] - key[0])  # an empty tensor's address is 0


class Observer:
    """Watches the kernels of one run of an op; `found` says what it saw.

    Args:
        extent: Arguments of the op around which kernels may touch the whole buffer.

    Attributes:
        undefined: Kernel and line of the first load with masked lanes and no `other`, None where there is none.
    """

    def __init__(self, extent: Collection[str] = ()) -> None:
        self._extent = extent
        self.undefined: tuple[str, Place] | None = None
        self._regions: dict[int, Region] = {}
        self._launch: _Launch | None = None
        self._launches: Counter[str] = Counter()
        self._accesses = 0
        self._computed: dict[str, None] = {}
        self._breaches: dict[tuple[str, ...], Breach] = {}

    def keep(self, name: str, tensor: Tensor, *, writable: bool = False, given: bool = True) -> None:
        """Learn of a tensor of the case: of its storage, kernels may touch nothing else."""
        if given and _has_memory(tensor):
            start = tensor.untyped_storage().data_ptr()
            known = self._regions.get(start)
            if known is None or known.written is not None:
                known = self._regions[start] = Region(tensor)
            known.give(tensor.detach(), whole=name.partition("[")[0] in self._extent)

    def allocated(self, tensor: Tensor, byte: int) -> None:
        """Learn of uninitialised memory that the op has allocated, and that holds `byte` everywhere."""
        if _has_memory(tensor):
            region = Region(tensor)
            region.poison(byte)
            self._regions[region.start] = region

    def returned(self, name: str, tensor: Tensor) -> None:
        """Look at a result `[*S]` for elements that nobody has written."""
        region = self._regions.get(tensor.untyped_storage().data_ptr()) if _has_memory(tensor) else None
        holes = region.holes(tensor.detach()) if region is not None else np.zeros(0)
        if holes.size:
            first, total = int(holes[0]), tensor.numel()
            self._breaches["returned", name] = Breach(
                rule="returned", tensor=name, offset=first, count=int(holes.size), total=total
            )

    def found(self) -> Observed:
        """Return what was seen so far."""
        return Observed(
            launches=tuple(self._launches.items()), accesses=self._accesses,
            breaches=tuple(self._breaches.values()), computed=tuple(self._computed),
        )  # fmt: skip

    @contextlib.contextmanager
    def launched(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        """Be around one launch."""
        kernel = executor.fn.__name__
        regions: dict[int, Region] = {}
        names: dict[tuple[int, int], str] = {}
        grains: dict[int, int] = {}
        for name, tensor in tensors_of(executor, args, kwargs):
            start = tensor.untyped_storage().data_ptr()
            if start not in regions:
                regions[start] = self._regions.get(start) or Region(tensor)
            names.setdefault((start, tensor.data_ptr()), name)
            grains[start] = min(grains.get(start, 8), tensor.element_size())
        self._launches[kernel] += 1
        outer, self._launch = self._launch, _Launch(kernel, regions, names, grains)
        try:
            yield
        finally:
            if origins.computed():
                self._computed[kernel] = None
            self._launch = outer

    def see(self, access: Access) -> Array:
        """Look at one access, and return the lanes of its mask that may go on."""
        launch = self._launch
        mask = np.broadcast_to(access.mask, access.pointers.shape)
        lanes = access.pointers[mask]
        if launch is None or not lanes.size:
            return access.mask
        self._accesses += 1
        program = tuple(interpreter.interpreter_builder.grid_idx)
        place = place_of(sys._getframe(2))
        if access.undefined and self.undefined is None and lanes.size < mask.size:
            self.undefined = launch.kernel, place
        launch.clock.tick(launch.programs.setdefault(program, len(launch.programs) + 1))
        launch.history.append((program, place, access.kind))
        if access.ordering and lanes.size == 1:
            launch.clock.ordering(int(lanes[0]))
        looking = _Looking(self, launch, access, mask, lanes)
        if access.wrap is not None:
            looking.wrapped(access.wrap)
        dropped = looking.dropped()
        if dropped is None:
            return access.mask
        admitted = mask.copy()
        admitted.reshape(-1)[np.flatnonzero(mask)[dropped]] = False
        return admitted

    def report(self, breach: Breach, place: Place) -> None:
        """Note a breach; of several on one line the first is kept and their lanes are counted."""
        where = f"{place[0]}:{place[1]}"
        key = (breach.rule, breach.kernel, breach.tensor, breach.access, where)
        before = self._breaches.get(key)
        if before is None:
            self._breaches[key] = replace(breach, where=where)
        else:
            self._breaches[key] = replace(before, count=before.count + breach.count)


@dataclass(slots=True)
class _Looking:
    """One access, looked at: active lanes are numbered `[n]` in the order of the flattened block."""

    observer: Observer
    launch: _Launch
    access: Access
    mask: Array
    lanes: Array

    def dropped(self) -> Array | None:
        """Return which of the active lanes must not happen, None where all may."""
        origin = self.access.origin
        region = self.launch.regions.get(origin[0]) if origin is not None else None
        if region is not None:
            return self._within(region, np.arange(self.lanes.size))
        if not self.launch.order:
            return None
        at = np.searchsorted(self.launch.starts, self.lanes, side="right") - 1
        whole = np.zeros(self.lanes.shape, np.bool_)
        for number in np.unique(at):
            chosen = np.flatnonzero(at == number)
            nearest = self.launch.order[max(int(number), 0)]
            if origins.computed():
                chosen = chosen[self._inside(nearest, chosen)]
            if chosen.size and (wrong := self._within(nearest, chosen)) is not None:
                whole[chosen[wrong]] = True
        return whole if whole.any() else None

    def wrapped(self, wrap: wraps.Wrap) -> None:
        """Tell of active lanes whose addresses were computed from integers that wrapped."""
        origin = self.access.origin
        region = self.launch.regions.get(origin[0]) if origin is not None else None
        true = np.broadcast_to(wrap.true, self.mask.shape)[self.mask]
        wrong = true != self.lanes.view(np.int64)
        if region is not None and wrong.any():
            offsets = (self.lanes - np.uint64(region.start)).view(np.int64)
            breach = self._breach("wrapped", region, np.arange(self.lanes.size), offsets, wrong)
            meant = (int(true[int(wrong.argmax())]) - int(self.lanes[int(wrong.argmax())])) // self.access.itemsize
            file, line = self.launch.history[-1][1]
            breach = replace(breach, meant=breach.offset + meant, other=f"at {file}:{line}")
            self.observer.report(breach, wrap.place)

    def _inside(self, region: Region, chosen: Array) -> Array:
        offsets = (self.lanes[chosen] - np.uint64(region.start)).view(np.int64)
        found: Array = (offsets >= 0) & (offsets <= region.size - self.access.itemsize)
        return found

    def _within(self, region: Region, chosen: Array) -> Array | None:
        """Look at the lanes that belong to one storage, and return which of them must not happen."""
        itemsize = self.access.itemsize
        offsets = (self.lanes[chosen] - np.uint64(region.start)).view(np.int64)
        wrong: Array | None = None
        if int(offsets.min()) < 0 or int(offsets.max()) > region.size - itemsize:
            wrong = ~self._inside(region, chosen)
            self._report("outside", region, chosen, offsets, wrong)
            inside = np.flatnonzero(~wrong)
            chosen, offsets = chosen[inside], offsets[inside]
        around = region.outside(offsets, itemsize)
        if around is not None:
            self._report("around", region, chosen, offsets, around)
            kept = np.flatnonzero(~around)  # that memory exists: the lanes go on
            chosen, offsets = chosen[kept], offsets[kept]
        if chosen.size:
            self._contents(region, chosen, offsets)
        return wrong

    def _contents(self, region: Region, chosen: Array, offsets: Array) -> None:
        access, itemsize = self.access, self.access.itemsize
        if access.kind != "store":
            missing = region.unwritten(offsets, itemsize)
            if missing is not None:
                self._report("unwritten", region, chosen, offsets, missing)
        self._races(region, chosen, offsets)
        if access.kind != "load":
            region.write(offsets, itemsize)

    def _races(self, region: Region, chosen: Array, offsets: Array) -> None:
        launch, access = self.launch, self.access
        if max(interpreter.interpreter_builder.grid_dim) == 1:
            return
        races = launch.races.get(region.start)
        if races is None:
            races = launch.races[region.start] = Races(region.size, launch.grains[region.start])
        if access.values is None:
            found = races.read(launch.clock, offsets, access.itemsize)
        else:
            values = np.broadcast_to(access.values, self.mask.shape)[self.mask][chosen]
            changed = region.words(offsets, access.itemsize) != bits(values)
            found = races.store(launch.clock, offsets, access.itemsize, changed)
        if found is not None:
            lane, time = found
            only = np.zeros(offsets.shape, np.bool_)
            only[lane] = True
            program, place, kind = launch.history[time - 1]
            did = "updates" if kind == "atomic" else f"{kind}s"
            other = f"program {list(program)} {did} at {place[0]}:{place[1]}"
            self._report("race", region, chosen, offsets, only, other)

    def _report(self, rule: Rule, region: Region, chosen: Array, offsets: Array, wrong: Array, other: str = "") -> None:
        breach = self._breach(rule, region, chosen, offsets, wrong, other)
        self.observer.report(breach, self.launch.history[-1][1])

    def _breach(
        self, rule: Rule, region: Region, chosen: Array, offsets: Array, wrong: Array, other: str = ""
    ) -> Breach:
        first = int(wrong.argmax())
        program, _, kind = self.launch.history[-1]
        name, base = self.launch.name(region, self.access.origin)
        lane = int(np.flatnonzero(self.mask)[chosen[first]])
        size = self.access.itemsize
        return Breach(
            rule=rule, tensor=name, kernel=self.launch.kernel, access=kind, program=program, lane=lane,
            offset=(int(offsets[first]) - base) // size, count=int(wrong.sum()), total=(region.size - base) // size,
            other=other,
        )  # fmt: skip


@contextlib.contextmanager
def observed(extent: Collection[str] = ()) -> Iterator[Observer]:
    """Observe every interpreted launch inside the block; of the arguments in `extent` the whole buffer is theirs."""
    observer = Observer(extent)
    with observing(observer.see), watching(observer.launched), wraps.followed():
        yield observer


def _has_memory(tensor: Tensor) -> bool:
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and (tensor.device.type == "cpu" and tensor.untyped_storage().nbytes() > 0)
    )
