"""Which files a module rests on: what it imports, and what those import, as far as they are the project's own."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder

from opcheck.run.watching import Watch


@dataclass(slots=True, kw_only=True)
class Closure:
    """What modules rest on.

    Attributes:
        files: The project's files.
        others: Top-level names of what is imported and not the project's.
    """

    files: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)


def closure(modules: Iterable[str], watch: Watch) -> Closure:
    """Return what modules rest on: by their import statements, wherever those stand, and by what `watch` saw.

    A package that is imported on the way to one of its modules counts by itself; what it imports for other users does
    not, unless a module imports the package by name.
    """
    found = Closure()
    todo, seen = list(modules), set[str]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        file = _file(name)
        own = watch.project.module(name, file)
        if not own:
            found.others.add(name.partition(".")[0])
            continue
        for each in (name, *_parents(name)):
            if path := watch.project.module(each, _file(each)):
                found.files |= {path, *watch.reads.get(each, ())}
        todo += [*_imports(name, file), *watch.imports.get(name, ())]
    found.others -= {*sys.stdlib_module_names, "opcheck"}
    return found


def _parents(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name


def _file(name: str) -> str:
    spec = _spec(name)
    return spec.origin or "" if spec is not None and spec.has_location else ""


def _spec(name: str) -> ModuleSpec | None:
    """Return where a module is, without importing it or its parents."""
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__spec__", None) is not None:
        return loaded.__spec__
    return _found(name)


@cache
def _found(name: str) -> ModuleSpec | None:
    parent = name.rpartition(".")[0]
    try:
        if not parent:
            return importlib.util.find_spec(name)
        above = _spec(parent)
        places = above.submodule_search_locations if above is not None else None
        return PathFinder.find_spec(name, places) if places is not None else None
    except (ImportError, AttributeError, ValueError):
        return None


def _imports(name: str, file: str) -> Iterator[str]:
    """Yield what a module's source imports, in functions and under conditions too."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return
    spec = _spec(name)
    package = name if spec is not None and spec.submodule_search_locations is not None else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, package)
        elif isinstance(node, ast.Call):
            yield from _by_name(node, package)


def _from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    base = _resolved("." * node.level + (node.module or ""), package)
    for item in node.names:
        module = f"{base}.{item.name}"
        yield module if _spec(module) is not None else base


def _by_name(node: ast.Call, package: str) -> Iterator[str]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    if called in ("import_module", "__import__") and isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield _resolved(first.value, package)


def _resolved(name: str, package: str) -> str:
    try:
        return importlib.util.resolve_name(name, package)
    except (ImportError, ValueError):
        return name.lstrip(".")
