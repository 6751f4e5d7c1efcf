"""The program that forks workers: it has imported what is slow to import, so that a worker starts in milliseconds.

It speaks on one socket, inherited from its parent. In: `{"fork": number}`, with the worker's end of a channel and its
log as file descriptors, and `{"kill": number}`. Out: `{"failures": {module: sentence}}` once, after the preload, and
`{"exit": number, "status": ...}` for every worker that ended, the status being a wait status, or a sentence where the
fork failed. The number is the parent's, which so never handles a process id that may already be another process's.
When the socket ends, everything that was started is killed.

It runs no tensor operation and starts no thread, because a fork after either may hang. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from multiprocessing.connection import wait
from types import FrameType
from typing import Any

from opcheck.run.forked import PR_SET_PDEATHSIG, prctl, run_worker

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_PACKET = 1 << 16
#: Seconds that a worker has to write down where it hangs, before it is killed without being asked.
_LAST_WORDS = 0.5
#: Seconds after which processes that SIGKILL does not end, as they wait in a driver, are left to the kernel.
_UNKILLABLE = 3.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Preload, then serve until the parent's end of the socket closes."""
    parser = argparse.ArgumentParser(prog="opcheck.run.forkserver", description="Fork opcheck's workers.")
    parser.add_argument("--fd", type=int, required=True, help="the command socket")
    parser.add_argument("--preload", default="", help="modules to import first, separated by commas")
    options = parser.parse_args(arguments)

    commands = socket.socket(fileno=options.fd)
    commands.set_inheritable(False)
    # An import that hangs must not outlive the parent either. Later the socket's end says so, and says it better: this
    # signal also comes when the thread ends that started the server.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    failures = preload(name for name in options.preload.split(",") if name)
    prctl(PR_SET_PDEATHSIG, 0)
    # A collection in a worker would otherwise write to, and so copy, the pages that all of them share.
    gc.collect()
    gc.freeze()

    server = ForkServer(commands)
    try:
        server.serve(failures)
    finally:
        server.end()
    # Nothing is left to tidy up, and torch takes 0.2 s over it.
    os._exit(0)


def preload(modules: Iterable[str]) -> dict[str, str]:
    """Import the modules and return, by module, a sentence for each that fails."""
    failures = {}
    for name in modules:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            failures[name] = f"{type(error).__name__}: {error}"[:500]
    return failures


class ForkServer:
    """Fork, kill and reap the workers that the command socket asks for."""

    def __init__(self, commands: socket.socket) -> None:
        self._commands = commands
        self._numbers: dict[int, int] = {}
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        # Workers inherit this: what Ctrl-C means is the parent's to decide.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _leave)
        # What a dead worker leaves behind becomes this process's child, not init's, and `end` can find it.
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def serve(self, failures: dict[str, str]) -> None:
        """Say that the preload is over, then do what the parent asks until it closes the socket."""
        with contextlib.suppress(ConnectionError):
            self._tell({"failures": failures})
            while True:
                ready = wait([self._commands, self._wake])
                if self._wake in ready:
                    self._wake.recv(_PACKET)
                    self._reap()
                if self._commands in ready:
                    packet, descriptors, _, _ = socket.recv_fds(self._commands, _PACKET, 2, socket.MSG_CMSG_CLOEXEC)
                    if not packet:
                        return
                    match json.loads(packet):
                        case {"fork": int(number)}:
                            self._fork(number, *descriptors)
                        case {"kill": int(number)}:
                            self._kill(number)

    def end(self) -> None:
        """Kill every worker, its process group and whatever has left that group."""
        for worker in self._numbers:
            _kill_group(worker)
        latest = time.monotonic() + _UNKILLABLE
        while time.monotonic() < latest:
            for process in _children():
                _kill(process, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.005)

    def _fork(self, number: int, channel: int, log: int) -> None:
        server = os.getpid()
        try:
            worker = os.fork()
        except OSError as error:
            self._tell({"exit": number, "status": f"could not be forked: {error.strerror}"})
        else:
            if worker == 0:
                for inherited in (self._commands, self._wake, self._woken):
                    inherited.close()
                run_worker(channel, log, server)
            self._numbers[worker] = number
        finally:
            os.close(channel)
            os.close(log)

    def _kill(self, number: int) -> None:
        """Kill a worker's process group, after SIGABRT, on which faulthandler writes the stack to the worker's log."""
        worker = next((process for process, its in self._numbers.items() if its == number), None)
        if worker is None:
            return
        _kill(worker, signal.SIGABRT)
        latest = time.monotonic() + _LAST_WORDS
        while not os.waitid(os.P_PID, worker, os.WEXITED | os.WNOHANG | os.WNOWAIT) and time.monotonic() < latest:
            time.sleep(0.005)
        _kill_group(worker)

    def _reap(self) -> None:
        """Report the workers that have ended."""
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                number = self._numbers.pop(ended.si_pid, None)
                if number is not None:
                    # While its leader is not reaped, the group's id cannot be another's.
                    _kill_group(ended.si_pid)
                _, status = os.waitpid(ended.si_pid, 0)
                if number is not None:
                    self._tell({"exit": number, "status": status})

    def _tell(self, message: dict[str, Any]) -> None:
        self._commands.send(json.dumps(message).encode())


def _kill_group(worker: int) -> None:
    """Kill the group that the worker leads, and the worker itself where it does not lead it yet."""
    _kill(worker, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker, signal.SIGKILL)


def _kill(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _children() -> list[int]:
    """List this process's children, as far as the kernel tells (CONFIG_PROC_CHILDREN)."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as children:
            return [int(process) for process in children.read().split()]
    except OSError:
        return []


def _ignore(number: int, frame: FrameType | None) -> None:
    """Leave SIGCHLD to the wake-up descriptor, which the signal reaches only where it has a handler."""


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
