"""The parent's side of one worker: what it was given, what it says, how long it may be silent."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from multiprocessing.connection import wait
from typing import Any

from opcheck.run.channel import DONE, READY, STOP, Channel, ChannelError
from opcheck.run.events import Death, Died, Done, Event, Job, Message
from opcheck.run.launch import Server, open_log, tail

#: Seconds from the end of a worker's channel, or from its kill, to the notice of its end, which takes milliseconds.
GRACE = 3.0


class Worker:
    """Start a worker and follow it to its end.

    Args:
        server: Forks and kills it.
        number: Its name between this process and the server.
        entry: `module:function`, what it runs.
        payload: What the entry is called with.
        timeout: Seconds that it may be silent while it starts or works.

    Attributes:
        deadline: When, by the monotonic clock, its silence has lasted too long.
        job: What it works on.
        ready: Whether it has asked for work.
        listening: Whether its channel is of use; else only its end is awaited.
    """

    def __init__(self, server: Server, number: int, *, entry: str, payload: Mapping[str, Any], timeout: float) -> None:
        self.number, self.entry = number, entry
        self.deadline = time.monotonic() + timeout
        self.job: Job | None = None
        self.ready = False
        self.listening = True
        self._server, self._timeout = server, timeout
        self._killed = ""
        self._timed_out = False
        self._log = open_log()
        endpoint = server.fork(number, self._log)
        endpoint.settimeout(timeout)
        self._channel = Channel(endpoint)
        self._send({"entry": entry, "payload": payload})

    def fileno(self) -> int:
        """Give the file descriptor that is readable when the worker has said something."""
        return self._channel.fileno()

    @property
    def idle(self) -> bool:
        """Whether it waits for work."""
        return self.ready and self.listening and self.job is None

    def give(self, job: Job) -> bool:
        """Hand it a job; False where the worker is gone and the job still to be done."""
        os.ftruncate(self._log.fileno(), 0)
        if not self._send({"item": job.item}):
            return False
        self.job = job
        self.deadline = time.monotonic() + self._timeout
        return True

    def stop(self) -> None:
        """Tell it to end by itself."""
        self._send(STOP)

    def listen(self) -> list[Event]:
        """Read once what has arrived; call it when `fileno` is readable."""
        events: list[Event] = []
        try:
            more = self._channel.fill()
            while self.listening and (message := self._channel.take()) is not None:
                events += self._accept(message)
        except ChannelError as error:
            self._kill(f"sent what is not a message ({error}), killed")
        else:
            if self.listening and not more:
                self._close_ears()
        return events

    def overdue(self) -> bool:
        """Kill it where its deadline is over and nothing waits to be read; True where it has been killed in vain."""
        if time.monotonic() < self.deadline or (self.listening and wait([self.fileno()], 0)):
            return False
        if self._killed:
            return True
        if self.listening:
            self._timed_out = True
            self._kill(f"no answer within {self._timeout:g} s, killed")
        else:
            self._kill("closed its channel without an answer, killed")
        return False

    def bury(self, reason: str) -> list[Event]:
        """Give the last events of a worker that has ended."""
        events: list[Event] = []
        while self.listening and wait([self.fileno()], 0):
            events += self.listen()
        if self.job is not None:
            events.append(Died(item_index=self.job.index, death=self.death(reason)))
        return events

    def death(self, reason: str) -> Death:
        """Describe its end; `reason` is the server's word, which counts where the worker was not killed from here."""
        return Death(reason=self._killed or reason, log=tail(self._log), timed_out=self._timed_out)

    def release(self) -> None:
        """Close its channel and its log."""
        self._channel.close()
        self._log.close()

    def _accept(self, message: dict[str, Any]) -> list[Event]:
        if not self.ready and message == READY:
            self.ready = True
            self.deadline = math.inf
            return []
        if self.job is None:
            self._kill("sent a message out of turn, killed")
            return []
        index = self.job.index
        if message != DONE:
            self.deadline = time.monotonic() + self._timeout
            return [Message(item_index=index, body=message)]
        self.job = None
        self.deadline = math.inf
        return [Done(item_index=index)]

    def _send(self, message: Mapping[str, Any]) -> bool:
        try:
            self._channel.send(message)
        except OSError:
            self._close_ears()
            return False
        return True

    def _close_ears(self) -> None:
        self.listening = False
        self.deadline = time.monotonic() + GRACE

    def _kill(self, reason: str) -> None:
        self._close_ears()
        self._killed = reason
        self._server.kill(self.number)
