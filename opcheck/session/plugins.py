"""Registries that installed packages bring along, by the entry-point group `opcheck.registries`.

A distribution says `[project.entry-points."opcheck.registries"] liger = "opcheck_liger"`: the value names a package
whose folder holds a `registry.toml`. Nothing of it is imported to find that file; workers import its modules.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from opcheck.declared.file import NAME, find
from opcheck.errors import PolicyError

GROUP = "opcheck.registries"
DISABLE = "OPCHECK_DISABLE_PLUGINS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A registry that is installed.

    Attributes:
        name: Of its entry point.
        distribution: The package that brings it, with its version.
        path: Its registry.toml.
    """

    name: str
    distribution: str
    path: Path

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution})"


def plugins(*, wanted: bool = True) -> tuple[Plugin, ...]:
    """Return the installed registries by name; none where they are not wanted, or the variable says so.

    Raises:
        PolicyError: An entry point names no package with a registry.toml; one sentence for each.
    """
    if not wanted or os.environ.get(DISABLE, "0") not in ("", "0"):
        return ()
    found: dict[str, Plugin] = {}
    problems = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        path, why = _registry_of(point)
        if path is None:
            problems.append(
                f"plug-in {point.name} ({_distribution(point)}): {GROUP} has the value {point.value!r}; {why}; "
                f"--no-plugins leaves plug-ins out"
            )
        elif point.name in found and found[point.name].path != path:
            problems.append(f"two plug-ins are called {point.name}: {found[point.name].path} and {path}")
        else:
            found[point.name] = Plugin(name=point.name, distribution=_distribution(point), path=path)
    if problems:
        raise PolicyError(tuple(problems))
    return tuple(found.values())


def registries(given: Path | None, brought: Sequence[Plugin]) -> tuple[list[Path], str]:
    """Return the files to read, and the folder from which the user's own modules import.

    Raises:
        PolicyError: There is neither a registry of the user's own nor one that a plug-in brings.
    """
    try:
        own = (given or find()).resolve()
    except PolicyError:
        if not brought:
            raise
        return [plugin.path for plugin in brought], ""
    others = (plugin.path for plugin in brought)
    return [own, *(path for path in others if path.resolve() != own)], str(own.parent)


def digest_of_files(paths: Iterable[str]) -> str:
    """Return a digest of what files hold, in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def _registry_of(point: EntryPoint) -> tuple[Path | None, str]:
    """Return the registry.toml of an entry point, or why there is none."""
    if point.attr:
        return None, f"it should name a package alone, without {':' + point.attr!r}"
    folders = _folders(point.module)
    if not folders:
        return None, f"there is no package {point.module}"
    path = next((folder / NAME for folder in folders if (folder / NAME).is_file()), None)
    return path, "" if path is not None else f"there is no {NAME} in {folders[0]}"


def _folders(package: str) -> Sequence[Path]:
    """Return the folders of a package without importing it or what it is in."""
    top, *rest = package.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return ()
    roots = (spec.submodule_search_locations or ()) if spec is not None else ()
    return tuple(folder for root in roots if (folder := Path(root, *rest)).is_dir())


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "of no distribution"
