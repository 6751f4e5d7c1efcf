"""The headers that C++ and CUDA sources include: a compiler reads them, in a process that nobody watches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_SOURCES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hip", ".inl")
_QUOTED = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def included(root: Path, files: Iterable[str]) -> set[str]:
    """Return the files that sources among `files` include in quotes, and what those include, where they lie beside.

    Args:
        root: The folder from which paths start.
    """
    todo = [path for path in files if path.endswith(_SOURCES)]
    seen = set(todo)
    while todo:
        path = todo.pop()
        for name in _QUOTED.findall(_read(root / path)):
            other = os.path.normpath(os.path.join(os.path.dirname(path), os.fsdecode(name)))
            if other not in seen and (root / other).is_file():
                seen.add(other)
                todo.append(other)
    return seen - set(files)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
