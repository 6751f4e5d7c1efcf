"""Whether inductor can build anything here, found out in a process of its own."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from typing import IO, NoReturn

LONGEST = 300.0  # seconds for the first build on a machine, which compiles torch's headers once
_BREATH = 0.5  # seconds between two signs of life
_ANSWER: list[str] = []  # found out once in a process


def unready(device: str, tell: Callable[[], None]) -> str:
    """Return why inductor cannot be used on a kind of device, empty where it can.

    The first build on a machine takes longer than a worker may be silent; hence `tell`, called while it lasts.
    """
    return "" if device != "cpu" else _built(tell)


def _built(tell: Callable[[], None]) -> str:
    if not _ANSWER:
        with tempfile.TemporaryFile("w+") as said:
            child = os.fork()
            if not child:
                _build(said.fileno())
            _ANSWER.append(_awaited(child, said, tell))
    return _ANSWER[0]


def _awaited(child: int, said: IO[str], tell: Callable[[], None]) -> str:
    until = time.monotonic() + LONGEST
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"it built nothing within {LONGEST:g} s"
        tell()
        time.sleep(_BREATH)
    said.seek(0)
    why = " ".join(said.read().split())
    if not why and ended[1]:
        why = f"the process that tried ended with {ended[1]}"
    return f"it cannot build for the CPU: {why}" if why else ""


def _build(said: int) -> NoReturn:
    """Build and run one function, write why it fails, and end the process."""
    try:
        import torch
        import torch._inductor.config as config

        with config.patch(compile_threads=1):
            torch.compile(lambda x: -x, backend="inductor")(torch.ones(3))
    except BaseException as error:
        os.write(said, f"{type(error).__name__}: {str(error)[:400]}".encode())
    finally:
        os._exit(0)
