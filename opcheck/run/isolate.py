"""Run work in processes that may crash, hang and print: the parent sees messages and deaths. Imports no torch."""

from __future__ import annotations

import atexit
import contextlib
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Self

from opcheck.errors import WorkerError
from opcheck.run.channel import Channel, WorkerChannel
from opcheck.run.events import Death, Died, Done, Event, Job, Message
from opcheck.run.handle import Worker
from opcheck.run.launch import Server, quote

__all__ = ["Channel", "Death", "Died", "Done", "Event", "Message", "Pool", "WorkerChannel"]

#: Seconds that idle workers have to end by themselves when the pool closes.
_FAREWELL = 0.5
#: Seconds that workers have to end when they are dismissed: a driver takes its time over a process's memory on a GPU.
_DISMISSAL = 5.0


class Pool:
    """Hand items to forked workers, one at a time to each, and replace the workers that die.

    A worker runs `entry(channel, payload)`, where `channel` is a `WorkerChannel`: it receives `{"item": {...}}`, sends
    any number of bodies and then `{"done": true}`, and ends on `{"stop": true}`. Workers start when there is work and
    stay for the next `run`. They print into a file; SIGINT does not reach them.

    Args:
        entry: `module:function`, imported in the worker.
        preload: Modules that the fork server imports; one that fails stands in `preload_failures`.
        require: Modules to preload without which no worker makes sense.
        environment: Variables to add to this process's own, set before anything is imported.
        size: The most workers at a time.
        timeout: Seconds that a worker may be silent while it starts or works; each message restarts the clock.
        payload: Sent to every worker at its start.

    Attributes:
        size: The most workers at a time.
        preload_failures: A sentence for each module of `preload` that could not be imported, by module.

    Raises:
        WorkerError: The fork server does not start, or cannot import a required module.
    """

    def __init__(
        self,
        *,
        entry: str,
        preload: Sequence[str] = (),
        require: Sequence[str] = (),
        environment: Mapping[str, str],
        size: int,
        timeout: float,
        payload: Mapping[str, Any],
    ) -> None:
        if size < 1 or timeout <= 0:
            raise ValueError(f"size is {size} and timeout {timeout}; both must be positive")
        self.size = size
        self._entry, self._payload, self._timeout = entry, payload, timeout
        self._workers: dict[int, Worker] = {}
        self._forks = 0
        self._queue: deque[Job] = deque()
        self._submitted = 0
        self._idle_deaths = 0
        self._running = self._closed = False
        self._server = Server(preload=preload, require=require, environment=environment)
        self.preload_failures: Mapping[str, str] = self._server.failures
        atexit.register(self.close)

    def run(self, items: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        """Have every item worked on, and yield what happens as it happens.

        An item ends with `Done` or `Died`. Leaving the iteration early kills the workers that are at work.

        Raises:
            WorkerError: A worker died without an item, and so did its replacement; or the fork server ended.
            KeyboardInterrupt: As it came, with the pool closed.
        """
        return self._run(items, self._entry)

    def run_once(self, item: Mapping[str, Any], *, entry: str | None = None) -> list[dict[str, Any]] | Death:
        """Have one item worked on, by `entry` where given, and return the bodies that came, or the worker's death."""
        bodies: list[dict[str, Any]] = []
        death = None
        for event in self._run([item], entry or self._entry):
            if isinstance(event, Message):
                bodies.append(event.body)
            elif isinstance(event, Died):
                death = event.death
        return death or bodies

    def resubmit(self, item: Mapping[str, Any]) -> int:
        """Put an item at the head of the queue of the `run` that is being iterated; return its item index.

        Raises:
            RuntimeError: No run is being iterated.
        """
        if not self._running:
            raise RuntimeError("resubmit outside of a run")
        index = self._submitted
        self._submitted += 1
        self._queue.appendleft(Job(index=index, item=item))
        return index

    def dismiss(self) -> None:
        """End all workers, and so free what memory they hold; the next `run` starts with new ones.

        Raises:
            RuntimeError: A run is being iterated.
        """
        if self._running:
            raise RuntimeError("dismiss inside of a run")
        for worker in self._workers.values():
            worker.stop()
        for number in self._awaited(set(self._workers), _DISMISSAL):
            self._server.kill(number)
        for worker in list(self._workers.values()):
            self._forget(worker)

    def close(self) -> None:
        """End the idle workers by a word, kill the others, and end the fork server. May be called again."""
        if self._closed:
            return
        self._closed = True
        try:
            self._say_stop()
        finally:
            self._server.close()
            for worker in self._workers.values():
                worker.release()
            self._workers.clear()
            atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, items: Sequence[Mapping[str, Any]], entry: str) -> Iterator[Event]:
        if self._closed or self._running:
            raise RuntimeError("the pool is closed" if self._closed else "a pool has one run at a time")
        self._running = True
        self._queue.extend(Job(index=index, item=item) for index, item in enumerate(items))
        self._submitted = len(self._queue)
        self._idle_deaths = 0
        try:
            while self._queue or any(worker.job for worker in self._workers.values()):
                self._hand_out(entry)
                events = self._step()
                # Before the caller takes its time over the events, so that no worker waits for it.
                self._hand_out(entry)
                yield from events
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            self._running = False
            self._queue.clear()
            for worker in list(self._workers.values()):
                if worker.job or worker.entry != self._entry:
                    self._server.kill(worker.number)
                    self._forget(worker)

    def _hand_out(self, entry: str) -> None:
        """Give the queue to idle workers, and fork as many as there is room and work for."""
        crew = [worker for worker in self._workers.values() if worker.entry == entry]
        for worker in crew:
            if self._queue and worker.idle:
                job = self._queue.popleft()
                if not worker.give(job):
                    self._queue.appendleft(job)
        starting = sum(not worker.ready for worker in crew)
        for _ in range(min(self.size - len(crew), len(self._queue) - starting)):
            self._forks += 1
            self._workers[self._forks] = Worker(
                self._server, self._forks, entry=entry, payload=self._payload, timeout=self._timeout
            )

    def _step(self) -> list[Event]:
        """Wait until something happens, and say what it means."""
        listening = {worker.fileno(): worker for worker in self._workers.values() if worker.listening}
        nearest = min((worker.deadline for worker in self._workers.values()), default=math.inf)
        left = None if nearest == math.inf else max(0.0, nearest - time.monotonic())
        ready = wait([self._server.fileno(), *listening], left)
        events: list[Event] = []
        for fileno, worker in listening.items():
            if fileno in ready:
                events += self._count(worker.listen())
        for number, reason in self._server.exits():
            if number in self._workers:
                events += self._bury(self._workers[number], reason)
        for worker in list(self._workers.values()):
            if worker.overdue():
                events += self._bury(worker, "killed in vain")
        return events

    def _bury(self, worker: Worker, reason: str) -> list[Event]:
        """Let go of a worker that has ended, and tolerate the first such end outside of an item."""
        events = self._count(worker.bury(reason))
        death = worker.death(reason)
        if worker.job is None:
            self._idle_deaths += 1
        self._forget(worker)
        if self._idle_deaths > 1:
            raise WorkerError(f"Two workers in a row ended before they had work: {death.reason}.{quote(death.log)}")
        return events

    def _count(self, events: list[Event]) -> list[Event]:
        if any(isinstance(event, Done) for event in events):
            self._idle_deaths = 0
        return events

    def _say_stop(self) -> None:
        stopping = {worker.number for worker in self._workers.values() if worker.idle}
        for number in stopping:
            self._workers[number].stop()
        with contextlib.suppress(WorkerError):
            self._awaited(stopping, _FAREWELL)

    def _awaited(self, stopping: set[int], seconds: float) -> set[int]:
        """Wait for workers to end, and return those that have not."""
        latest = time.monotonic() + seconds
        while stopping and (left := latest - time.monotonic()) > 0:
            wait([self._server.fileno()], left)
            stopping -= {number for number, _ in self._server.exits()}
        return stopping

    def _forget(self, worker: Worker) -> None:
        del self._workers[worker.number]
        worker.release()
