"""What is the project's own, of all files that a process imports and reads."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

_OURS = ("opcheck", "torch", "triton")  # installed or not, their versions stand for them
_INSTALLED = frozenset({"site-packages", "dist-packages"})


class Project:
    """The files that may be edited between two audits.

    Args:
        root: The registry's folder; paths are relative to it.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        homes = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(Path(__file__).parents[1])]
        if sys.prefix != sys.base_prefix:
            homes.append(sys.prefix)
        self._elsewhere = tuple(os.path.realpath(home) + os.sep for home in homes)

    def module(self, name: str, file: str) -> str:
        """Return the path of a module's file where it is the project's, below the root or not; else ""."""
        if not file or name.partition(".")[0] in _OURS:
            return ""
        return self._own(os.path.realpath(file))

    def read(self, path: str) -> str:
        """Return the path of a file that was read where it is below the root and no cache; else ""."""
        full = os.path.realpath(path)
        if not full.startswith(self.root + os.sep):
            return ""
        own = self._own(full)
        return "" if any(part.startswith(".") or part == "__pycache__" for part in own.split(os.sep)) else own

    def _own(self, full: str) -> str:
        if full.startswith(self._elsewhere) or not _INSTALLED.isdisjoint(full.split(os.sep)):
            return ""
        return os.path.relpath(full, self.root)
