"""What a worker does between its fork and its entry, and how it ends."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from opcheck.run.channel import WorkerChannel

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def prctl(option: int, argument: int) -> None:
    """Set one attribute of this process; the options are those of `linux/prctl.h`."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}, {argument})")


def run_worker(channel: int, log: int, server: int) -> NoReturn:
    """Run the entry that the first message names, in this freshly forked process, and leave it.

    Args:
        channel: File descriptor of the worker's end of its channel.
        log: File descriptor that takes what the worker prints.
        server: Process id of the fork server; the worker dies with it.
    """
    status = 1
    try:
        _detach(log, server)
        work = WorkerChannel(socket.socket(fileno=channel))
        start = work.start()
        _entry(start["entry"])(work, start["payload"])
        status = 0
    except SystemExit as leave:
        status = _exit_status(leave)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)


def _detach(log: int, server: int) -> None:
    """Cut what ties the worker to the fork server, but for the one that kills it when the server dies."""
    signal.set_wakeup_fd(-1)
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # The log is the evidence of a crash; a core file of a process with torch in it is gigabytes that nobody reads.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    faulthandler.enable(file=2, all_threads=False)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def _entry(name: str) -> Callable[[WorkerChannel, dict[str, object]], object]:
    """Import `module:function`."""
    module, _, function = name.partition(":")
    entry: Callable[[WorkerChannel, dict[str, object]], object] = getattr(importlib.import_module(module), function)
    return entry


def _exit_status(leave: SystemExit) -> int:
    """Give the status that the interpreter would leave with."""
    if leave.code is None:
        return 0
    if isinstance(leave.code, int):
        return leave.code & 0xFF
    print(leave.code, file=sys.stderr)
    return 1
