"""The parent's handle on the fork server. Imports no torch."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from typing import IO, Any

from opcheck.errors import WorkerError

#: Seconds for the preload; torch takes 4, and a cold network file system ten times that.
START_TIMEOUT = 300.0
#: Characters of a log that evidence keeps.
LOG_TAIL = 2000
_PACKET = 1 << 16


class Server:
    """Start a fork server and ask it to fork and kill workers.

    Args:
        preload: Modules to import before any fork. One that fails stands in `failures`.
        require: Modules to preload without which no worker makes sense.
        environment: Variables to add to this process's own, set before anything is imported.

    Attributes:
        failures: A sentence for each module of `preload` that could not be imported, by module.

    Raises:
        WorkerError: The server does not start, or cannot import a required module.
    """

    def __init__(self, *, preload: Sequence[str], require: Sequence[str] = (), environment: Mapping[str, str]) -> None:
        self._log = open_log()
        self._commands, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-u", "-m", "opcheck.run.forkserver", "--fd", str(theirs.fileno())]
        command += ["--preload", ",".join(dict.fromkeys([*require, *preload]))]
        with theirs:
            try:
                self._process = subprocess.Popen(
                    command,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    # Ctrl-C in a terminal goes to the parent alone, which decides.
                    start_new_session=True,
                )
            except OSError as error:
                self._commands.close()
                self._log.close()
                raise WorkerError(f"The fork server cannot be started: {error}.") from error
        try:
            self.failures = self._await_preload()
            if missing := [f"{name} ({self.failures[name]})" for name in require if name in self.failures]:
                raise WorkerError(f"The workers cannot import {', '.join(missing)}.")
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Give the file descriptor that is readable when `exits` has news."""
        return self._commands.fileno()

    def fork(self, number: int, log: IO[bytes]) -> socket.socket:
        """Ask for a worker called `number` that prints to `log`; return this side's end of its channel."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                request = json.dumps({"fork": number}).encode()
                socket.send_fds(self._commands, [request], [theirs.fileno(), log.fileno()])
            except OSError as error:
                ours.close()
                raise self._dead() from error
        return ours

    def kill(self, number: int) -> None:
        """Ask for the worker's process group to be killed; `exits` says when it is."""
        # Where the server is gone its workers are too, and `exits` is the place that says so.
        with contextlib.suppress(OSError):
            self._commands.send(json.dumps({"kill": number}).encode())

    def exits(self) -> list[tuple[int, str]]:
        """List, without waiting, the workers that have ended since the last call, and how.

        Raises:
            WorkerError: The server itself has ended.
        """
        ended = []
        while wait([self._commands], 0):
            message = self._receive()
            ended.append((message["exit"], describe(message["status"])))
        return ended

    def close(self) -> None:
        """Kill the server and every worker with what they started. May be called again."""
        self._commands.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _await_preload(self) -> dict[str, str]:
        if not wait([self._commands], START_TIMEOUT):
            # It may hang in an import: closing the socket alone would not end it soon.
            self._process.kill()
            raise WorkerError(f"The fork server has not started within {START_TIMEOUT:g} s.{quote(tail(self._log))}")
        failures: dict[str, str] = self._receive()["failures"]
        return failures

    def _receive(self) -> dict[str, Any]:
        try:
            packet = self._commands.recv(_PACKET)
        except OSError as error:
            raise self._dead() from error
        if not packet:
            raise self._dead()
        message: dict[str, Any] = json.loads(packet)
        return message

    def _dead(self) -> WorkerError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        code = self._process.returncode
        how = "closed its socket" if code is None else describe_exit_code(code)
        return WorkerError(f"The fork server ended: {how}.{quote(tail(self._log))}")


def describe(status: int | str) -> str:
    """Say how a process ended, from its wait status; a sentence of the server stays as it is."""
    return status if isinstance(status, str) else describe_exit_code(os.waitstatus_to_exitcode(status))


def describe_exit_code(code: int) -> str:
    """Say how a process ended, from its exit status or, where negative, its signal."""
    if code >= 0:
        return f"exited with status {code} without an answer"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as the kernel does when memory runs out" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}"


def open_log() -> IO[bytes]:
    """Open a file without a name, which no end of this process can leave behind, for what others print."""
    log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - its life is its worker's, which ends elsewhere
    # A worker keeps its descriptor while the parent empties the file: it must write at the end, wherever that is.
    fcntl.fcntl(log, fcntl.F_SETFL, fcntl.fcntl(log, fcntl.F_GETFL) | os.O_APPEND)
    return log


def tail(log: IO[bytes]) -> str:
    """Read the end of a log, or from the crash report of Python's faulthandler where it holds one."""
    window = 32 * LOG_TAIL
    size = os.fstat(log.fileno()).st_size
    text = os.pread(log.fileno(), window, max(0, size - window)).decode(errors="replace")
    # faulthandler ends with a line of all extension modules: a thousand characters that push out the stack.
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("Extension modules: ")]
    text = "".join(lines).rstrip()
    report = text.rfind("Fatal Python error: ")
    start = len(text) - LOG_TAIL
    if report >= 0:
        start = min(start, report - LOG_TAIL // 4)
    return text[max(0, start) :][:LOG_TAIL]


def quote(log: str) -> str:
    """Set a log under a sentence, or nothing where there is none."""
    return f"\n{log}" if log else ""
