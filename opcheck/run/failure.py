"""Say what a user's code raised, and on which of the user's lines."""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path
from types import FrameType

from opcheck.core.outcome import Raised, Role
from opcheck.errors import OpcheckError
from opcheck.run.shortage import notice

_OURS = str(Path(__file__).parent.parent)
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in ')
_FATAL = "Fatal Python error: "  # the first words of faulthandler's report
_START = Path.cwd()  # what a path is shown relative to, whatever directory a kernel has changed to
LONGEST = 600  # characters of a message


def describe(error: BaseException, role: Role, phase: str) -> Raised:
    """Return a role's exception as an outcome: its root cause, in one line, at the user's line."""
    notice(error)
    root = _root(error)
    text = re.sub(r"\s+", " ", root.msg if isinstance(root, SyntaxError) else str(root)).strip()
    if len(text) > LONGEST:
        text = text[: LONGEST - 4] + " ..."
    name = "" if isinstance(root, OpcheckError) else type(root).__name__
    return Raised(role=role, phase=phase, error=name, message=text, where=_where(root) or _where(error))


def blame(log: str) -> tuple[str, str]:
    """Return the user's line at which a process died, as faulthandler reports it, and the log without that report.

    The line is empty where the log holds no report, or none with a line outside of opcheck, torch and triton.
    """
    before, fatal, report = log.partition(_FATAL)
    if not fatal:
        return "", log
    frames = [match for line in report.splitlines() if (match := _FRAME.match(line))]
    theirs = next((frame for frame in frames if _outside(frame["file"])), None)
    return (f"{short(theirs['file'])}:{theirs['line']}" if theirs else ""), before


def place_of(function: object) -> str:
    """Return where a function is defined, empty where that is not known."""
    code = getattr(function, "__code__", None)
    return f"{short(code.co_filename)}:{code.co_firstlineno}" if code is not None else ""


def calling_line() -> str:
    """Return the innermost of the user's lines that is running in this thread, empty where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _outside(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{short(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else ""


def _root(error: BaseException) -> BaseException:
    """Follow explicit causes: Triton's interpreter wraps what really happened, opcheck says what it means."""
    seen = {id(error)}
    while not isinstance(error, OpcheckError) and error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error


def _where(error: BaseException) -> str:
    """Return the deepest line outside opcheck, torch and triton."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{short(error.filename)}:{error.lineno}"
    found = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if _outside(frame.filename):
            found = f"{short(frame.filename)}:{frame.lineno}"
    return found


def _outside(filename: str) -> bool:
    """Whether a file is neither opcheck's nor of an installed package or the standard library."""
    return not (filename.startswith((_OURS, "<")) or "site-packages" in filename or "/lib/python3" in filename)


def short(filename: str) -> str:
    """Return a file's path relative to where opcheck was called, or as it is."""
    path = Path(filename)
    try:
        return str(path.relative_to(_START))
    except ValueError:
        return str(path)
