"""Watch what a process imports and reads of the project, and on whose behalf: Python tells it to an audit hook."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from opcheck.run.project import Project

_WRITES = os.O_WRONLY | os.O_CREAT


class Watch:
    """What was imported and read since `start`.

    Attributes:
        reads: Files, by the module of the project at whose words they were opened; `""` where it was none.
        imports: Modules that a module imported by name at run time, where no `import` statement tells of it.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.reads: dict[str, set[str]] = defaultdict(set)
        self.imports: dict[str, set[str]] = defaultdict(set)
        self._fresh: set[str] = set()
        self._own: dict[tuple[str, str], str] = {}

    def start(self) -> None:
        """Begin; a hook of this kind stays for the life of its process."""
        sys.addaudithook(self._hear)

    def take(self) -> list[str]:
        """Return the files that were opened since this was last asked."""
        found, self._fresh = sorted(self._fresh), set()
        return found

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Watch `importlib.import_module` too, which tells the hook nothing of a module that is there already."""
        original = importlib.import_module

        def import_module(name: str, package: str | None = None) -> Any:
            if owner := self._owner(sys._getframe(1)):
                self.imports[owner].add(importlib.util.resolve_name(name, package))
            return original(name, package)

        importlib.import_module = import_module
        try:
            yield
        finally:
            importlib.import_module = original

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        # What a hook raises, the caller of `open` gets to see.
        with suppress(OSError, ValueError):
            if event == "open":
                self._opened(*args)
            elif event == "import":
                self._imported(args[0])
            elif event == "ctypes.dlopen":
                self._opened(args[0], None, 0)

    def _opened(self, path: Any, mode: str | None, flags: int) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or flags & _WRITES or (mode and mode[0] in "wax"):
            return
        frame = sys._getframe(2)
        if _of_import(frame):
            return  # the source of a module, which whoever imports it does not read otherwise
        if own := self.project.read(os.fsdecode(path)):
            self.reads[self._owner(frame)].add(own)
            self._fresh.add(own)

    def _imported(self, name: str) -> None:
        """Note what a module of the project imports itself, not what that imports in turn."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and _of_import(frame):
            frame = frame.f_back
        if frame is not None and self._is_own(frame.f_globals.get("__name__", ""), frame.f_code.co_filename):
            self.imports[frame.f_globals["__name__"]].add(name)

    def _owner(self, frame: FrameType | None) -> str:
        """Return the nearest module of the project among the callers, empty where there is none."""
        while frame is not None:
            name, file = frame.f_globals.get("__name__"), frame.f_code.co_filename
            if isinstance(name, str) and self._is_own(name, file):
                return name
            frame = frame.f_back
        return ""

    def _is_own(self, name: str, file: str) -> bool:
        if (name, file) not in self._own:
            self._own[name, file] = "" if file.startswith("<") else self.project.module(name, file)
        return bool(self._own[name, file])


def _of_import(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_globals.get("__name__") == "importlib"
