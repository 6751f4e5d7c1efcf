"""Write to standard output and standard error, which may be closed, full, or a pipe that nobody reads any more."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO


def open_streams() -> None:
    """Give output a place where the shell closed it (`>&-`), and let no letter stop a report that a stream lacks."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as we do
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def show(text: str) -> bool:
    """Write to standard output; return whether it took the text, or nobody reads it any more."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        mute(sys.stdout)
    except OSError as error:
        mute(sys.stdout)
        say(f"opcheck: cannot write to standard output ({error.strerror}); give the report a file with -o FILE")
        return False
    return True


def say(text: str) -> None:
    """Write a line to standard error; where nobody can read it, that must not change what the audit says."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def mute(stream: TextIO) -> None:
    """Send what a stream still holds, and all that follows, to nowhere, so that the exit does not fail on it."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
