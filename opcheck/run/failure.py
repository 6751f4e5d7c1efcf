"""Say what a user's code raised, and on which of the user's lines."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from opcheck.core.outcome import Raised, Role

_OURS = str(Path(__file__).parent.parent)
LONGEST = 600  # characters of a message


def describe(error: BaseException, role: Role, phase: str) -> Raised:
    """Return a role's exception as an outcome: its root cause, in one line, at the user's line."""
    root = _root(error)
    text = re.sub(r"\s+", " ", str(root)).strip()
    if len(text) > LONGEST:
        text = text[: LONGEST - 4] + " ..."
    return Raised(role=role, phase=phase, error=type(root).__name__, message=text, where=_where(root) or _where(error))


def _root(error: BaseException) -> BaseException:
    """Follow explicit causes: Triton's interpreter wraps what really happened."""
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error


def _where(error: BaseException) -> str:
    """Return the deepest line outside opcheck, torch and triton."""
    found = ""
    for frame in traceback.extract_tb(error.__traceback__):
        outside = not frame.filename.startswith(_OURS) and "site-packages" not in frame.filename
        if outside and not frame.filename.startswith("<") and "/lib/python3" not in frame.filename:
            found = f"{_short(frame.filename)}:{frame.lineno}"
    return found


def _short(filename: str) -> str:
    path = Path(filename)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
