"""What the modules of a registry register, read from their source: nothing is imported."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")
_OPS = "torch.ops."
_CALLS = ("register", "adopt")


@dataclass(slots=True, kw_only=True)
class Registrations:
    """The registrations in source files.

    Attributes:
        places: Where each op is registered, by its name.
        problems: Files that cannot be read, modules that are not there, names that are taken twice, as sentences.
        computed: Places of registrations whose names only their import tells.
    """

    places: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)


def registrations(modules: Sequence[str], root: Path) -> Registrations:
    """Read the modules of a registry, and all that packages among them hold, from `root` and then the path."""
    found = Registrations()
    for name in modules:
        files = list(_files(name, root))
        if not files:
            found.problems.append(f"there is no source of module {name} in {root}; mend registry.modules")
        for file in files:
            _read(file, root, found)
    return found


def _files(module: str, root: Path) -> Iterator[Path]:
    """Yield the source files of a module, and of all modules below it where it is a package."""
    for folder in (root, *map(Path, filter(None, sys.path))):
        place = folder.joinpath(*module.split("."))
        if (place / "__init__.py").is_file():
            yield from _package(place)
            return
        if place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")
            return


def _package(folder: Path) -> Iterator[Path]:
    for item in sorted(folder.iterdir()):
        if item.suffix == ".py" and item.is_file():
            yield item
        elif (item / "__init__.py").is_file():
            yield from _package(item)


def _read(file: Path, root: Path, found: Registrations) -> None:
    shown = file.relative_to(root) if file.is_relative_to(root) else file
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except SyntaxError as error:
        found.problems.append(f"{shown}:{error.lineno or 1}: {error.msg}")
        return
    except (OSError, ValueError, RecursionError) as error:
        found.problems.append(f"{shown} cannot be read: {error}")
        return
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _called(call) in _CALLS:
            _note(call, f"{shown}:{call.lineno}", found)


def _note(call: ast.Call, place: str, found: Registrations) -> None:
    name = _named(call)
    if name in found.places:
        found.problems.append(f"{place}: {name} is already registered at {found.places[name]}; rename one of them")
    elif name:
        found.places[name] = place
    elif any(item.arg in ("reference", "samples") for item in call.keywords):  # another function may be called so
        found.computed.append(place)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _named(call: ast.Call) -> str:
    """Return the name that a call registers, empty where it is not written there."""
    given = [item.value for item in call.keywords if item.arg == "name"] or call.args[:1]
    for value in given:
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and _NAME.fullmatch(value.value):
            return value.value
        text = ast.unparse(value) if isinstance(value, ast.Attribute) else ""
        if text.startswith(_OPS) and text.count(".") in (3, 4):  # torch.ops.ns.name, or an overload of it
            return "::".join(text.split(".")[2:4])
    return ""
