"""What is here now: files, folders, versions and variables, as a manifest records them."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from opcheck.backends.present import driver_version
from opcheck.core.evidence import Manifest
from opcheck.core.version import VERSION

_PACKAGE = Path(__file__).parents[1]
_VARIABLES = ("TRITON_", "TORCH", "PYTORCH_", "NVIDIA_", "CUDA_")
_PLACES = ("_CACHE_DIR", "_DUMP_DIR")  # where something is kept changes no number
_SUFFIXES = tuple(importlib.machinery.all_suffixes())

#: What every outcome rests on; an op adds the distributions that its modules import.
ALWAYS = ("python", "opcheck", "torch", "triton", "numpy", "ml_dtypes")
DRIVER = "nvidia driver"


class Here:
    """What is below and around a registry's folder; each file is read once at most.

    Args:
        root: The registry's folder, from which paths in a manifest start.
        package: The package of opcheck itself, whose source counts as its version.
    """

    def __init__(self, root: Path, *, environ: Mapping[str, str] = os.environ, package: Path = _PACKAGE) -> None:
        self.root, self._package = root, package
        self.variables = {
            name: environ[name]
            for name in sorted(environ)
            if name.startswith(_VARIABLES) and not name.endswith(_PLACES)
        }
        self._stats: dict[str, tuple[int, int] | None] = {}
        self._digests: dict[str, str] = {}
        self._versions: dict[str, str] = {}

    def manifest(self, files: Iterable[str], *, folders: Iterable[str] = (), distributions: Iterable[str] = (),
                 asked: str) -> Manifest:  # fmt: skip
        """Return the manifest of an outcome that rests on these; a file that is not there any more is left out."""
        found = {path: now for path in sorted(set(files)) if (now := self.digest(path))}
        names = sorted({*ALWAYS, *distributions})
        return Manifest(
            files=found,
            stats={path: stat for path in found if (stat := self.stat(path)) is not None},
            folders={path: self.folder(path) for path in sorted(set(folders))},
            distributions={name: self.version(name) for name in names},
            variables=self.variables,
            asked=asked,
        )

    def digest(self, path: str, stat: tuple[int, int] | None = None, known: str = "") -> str:
        """Return the digest of a file, empty where it cannot be read.

        Args:
            stat, known: The file's digest at an earlier time, taken for today's where size and time of change are that
                time's.
        """
        if stat is not None and self.stat(path) == tuple(stat):
            return known
        if path not in self._digests:
            try:
                self._digests[path] = _digest((self.root / path).read_bytes())
            except OSError:
                self._digests[path] = ""
        return self._digests[path]

    def stat(self, path: str) -> tuple[int, int] | None:
        """Return size and time of change of a file, None where it is not there."""
        if path not in self._stats:
            try:
                found = os.stat(self.root / path)
                self._stats[path] = (found.st_size, found.st_mtime_ns)
            except OSError:
                self._stats[path] = None
        return self._stats[path]

    def folder(self, path: str) -> str:
        """Return the digest of what can be imported from a folder: another file beside it changes nothing."""
        return _digest("\n".join(importable(self.root / path)).encode("utf-8", "surrogateescape"))

    def version(self, name: str) -> str:
        """Return the version of a distribution, "missing" where it is not installed; imports nothing of it."""
        if name not in self._versions:
            self._versions[name] = self._version(name)
        return self._versions[name]

    def _version(self, name: str) -> str:
        if name == "python":
            return platform.python_version()
        if name == "opcheck":
            return f"{VERSION}+{self._source}"
        if name == DRIVER:
            return driver_version() or "missing"
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return "missing"

    @property
    def edited(self) -> int:
        """When opcheck's own source was last changed, in nanoseconds."""
        return max(os.stat(path).st_mtime_ns for path in self._own_files())

    @cached_property
    def _source(self) -> str:
        """Digest of opcheck's own source: a check that is edited judges anew, whatever the version says."""
        found = hashlib.blake2b(digest_size=16)
        for path in self._own_files():
            found.update(f"{os.path.relpath(path, self._package)}\0".encode("utf-8", "surrogateescape"))
            found.update(_digest(Path(path).read_bytes()).encode())
        return found.hexdigest()

    def _own_files(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self._package):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            yield from (os.path.join(folder, name) for name in sorted(names))


def importable(folder: Path) -> list[str]:
    """Return the names of a folder's modules and packages as they lie there, sorted; none where it is gone."""
    try:
        with os.scandir(folder) as entries:
            return sorted(item.name for item in entries if _module(item))
    except OSError:
        return []


def _module(item: os.DirEntry[str]) -> bool:
    return item.name.endswith(_SUFFIXES) or os.path.isfile(os.path.join(item.path, "__init__.py"))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
