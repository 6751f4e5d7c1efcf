"""Name the line of a kernel at which something happens, from the frames that led there."""

from __future__ import annotations

from types import FrameType

Place = tuple[str, int]

_THEIRS: dict[str, bool] = {}


def place(frame: FrameType | None) -> Place:
    """Return the innermost line that is neither Triton's nor opcheck's."""
    while frame is not None:
        file = frame.f_code.co_filename
        theirs = _THEIRS.get(file)
        if theirs is None:
            theirs = _THEIRS[file] = not ("/triton/" in file or "opcheck/backends/" in file or file.startswith("<"))
        if theirs:
            return file, frame.f_lineno
        frame = frame.f_back
    return "", 0
