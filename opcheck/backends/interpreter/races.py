"""Who touched which element in one launch: two programs of which one stores must not meet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opcheck.backends.interpreter.dtypes import Array
from opcheck.backends.virtual import zeros


class Clock:
    """Numbers the accesses of one launch from 1 on, and remembers whose each was.

    An atomic of one lane orders accesses, as a lock or a ticket does: what a program did before its atomic is over for
    one that comes to the same address later.
    """

    def __init__(self) -> None:
        self.now = 0
        self._programs: Array = np.zeros(1024, np.int32)
        self._atomics: dict[int, dict[int, int]] = {}

    def tick(self, program: int) -> None:
        """Begin an access of a program, numbered from 1."""
        self.now += 1
        if self.now >= self._programs.size:
            self._programs = np.concatenate((self._programs, np.zeros_like(self._programs)))
        self._programs[self.now] = program

    def ordering(self, address: int) -> None:
        """Note that the present access is an atomic of one lane."""
        self._atomics.setdefault(int(self._programs[self.now]), {})[address] = self.now

    def foreign(self, times: Array) -> Array:
        """Return which accesses, `[n]` of numbers or 0 for none, were another program's than the present one's."""
        whose = self._programs[times]
        found: Array = (whose != 0) & (whose != self._programs[self.now])
        return found

    def unordered(self, times: Array) -> Array:
        """Return which accesses of other programs, `[n]`, no atomic orders before the present one."""
        mine = self._atomics.get(int(self._programs[self.now]))
        if not mine:
            return np.ones(times.shape, np.bool_)
        return np.array([not self._ordered(int(time), mine) for time in times], np.bool_)

    def _ordered(self, time: int, mine: dict[int, int]) -> bool:
        theirs = self._atomics.get(int(self._programs[time]), {})
        return any(theirs.get(address, 0) > time for address in mine)


class Races:
    """The latest accesses of each element of a storage in one launch.

    Args:
        size: Bytes of the storage.
        grain: Bytes of its narrowest element; an access whose width is no multiple is not looked at.
    """

    def __init__(self, size: int, grain: int) -> None:
        self._grain = grain
        count = -(-size // grain)
        # The last store, negative where no store changed a bit; the last read; the last by another program than that.
        self._stored: Array = zeros(count, np.int32)
        self._read: Array = zeros(count, np.int32)
        self._read_elsewhere: Array = zeros(count, np.int32)

    def read(self, clock: Clock, offsets: Array, itemsize: int) -> tuple[int, int] | None:
        """Note a load or an atomic at byte offsets `[n]`; return a lane that races and the number of the store."""
        found = None
        for place in self._places(offsets, itemsize):
            stored = self._stored[place]
            if found is None and (stored > 0).any():
                found = _first(clock, (stored > 0) & clock.foreign(np.maximum(stored, 0)), stored)
            before = self._read[place]
            if before.any():
                moved = clock.foreign(before)
                self._read_elsewhere[place] = np.where(moved, before, self._read_elsewhere[place])
            self._read[place] = clock.now
        return found

    def store(self, clock: Clock, offsets: Array, itemsize: int, changed: Array) -> tuple[int, int] | None:
        """Note a store at byte offsets `[n]`, of which `changed` change a bit; return as `read` does."""
        found = None
        for place in self._places(offsets, itemsize):
            stored = self._stored[place]
            for times in (np.abs(stored), self._read[place], self._read_elsewhere[place]):
                if found is None and times.any():
                    found = _first(clock, changed & clock.foreign(times), times)
            self._stored[place] = np.where(changed | (stored > 0), clock.now, -clock.now)
        return found

    def _places(self, offsets: Array, itemsize: int) -> Iterator[Array]:
        if not itemsize % self._grain:
            for part in range(itemsize // self._grain):
                yield offsets // self._grain + part


def _first(clock: Clock, lanes: Array, times: Array) -> tuple[int, int] | None:
    at = np.flatnonzero(lanes)
    if not at.size:
        return None
    unordered = clock.unordered(times[at])
    if not unordered.any():
        return None
    lane = int(at[int(unordered.argmax())])
    return lane, int(times[lane])
