"""The modules of a registry among files: those that an import of the registry would walk."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path


def python_files(folder: Path, roots: Iterable[str]) -> frozenset[str]:
    """Return the Python files of modules and packages on disk, by their paths from the registry's folder."""
    found = set()
    for root in roots:
        at = folder / root.replace(".", "/")
        found |= {path.relative_to(folder).as_posix() for path in at.rglob("*.py")}
        if at.with_suffix(".py").is_file():
            found.add(at.with_suffix(".py").relative_to(folder).as_posix())
    return frozenset(found)


def module_names(files: Collection[str], roots: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that `roots` are and, where they are packages, hold; folders below need an `__init__.py`."""
    found: dict[str, None] = {}
    for root in roots:
        base = root.replace(".", "/")
        if f"{base}/__init__.py" not in files and f"{base}.py" in files:
            found[root] = None
            continue
        for path in sorted(item for item in files if item.startswith(f"{base}/")):
            parts = path[len(base) + 1 : -len(".py")].split("/")
            above = ["/".join((base, *parts[:depth])) for depth in range(1, len(parts))]
            if all(f"{folder}/__init__.py" in files for folder in above):
                found[".".join((root, *(part for part in parts if part != "__init__")))] = None
    return tuple(found)
