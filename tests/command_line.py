"""Call opcheck as its users do: in this process where that is enough, in one of its own where it is not."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opcheck.cli import main

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a call printed, and its exit status."""

    status: int
    out: str
    err: str


def opcheck(*arguments: str) -> Said:
    """Call the command line in this process."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            status = main(arguments)
        except SystemExit as leave:
            status = int(leave.code or 0)
    return Said(status=status, out=out.getvalue(), err=err.getvalue())


def command(*arguments: str) -> list[str]:
    """The command that calls opcheck in a process of its own."""
    return [sys.executable, "-m", "opcheck", *arguments]


def start(*arguments: str, environment: dict[str, str] | None = None) -> Said:
    """Call the command line in a process of its own, in the root of the project."""
    done = subprocess.run(
        command(*arguments), cwd=ROOT, env=environment, text=True, capture_output=True, timeout=100, check=False
    )
    return Said(status=done.returncode, out=done.stdout, err=done.stderr)


def shell(script: str, *arguments: str) -> Said:
    """Run a line of shell in which `"$@"` is the call of opcheck, in the root of the project."""
    call: Sequence[str] = ("bash", "-c", script, "bash", *command(*arguments))
    done = subprocess.run(call, cwd=ROOT, text=True, capture_output=True, timeout=100, check=False)
    return Said(status=done.returncode, out=done.stdout, err=done.stderr)
