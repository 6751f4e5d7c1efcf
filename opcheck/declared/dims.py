"""What the keys of a contract that speak of dimensions must say together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opcheck.core.schema import Problems, join, meant
from opcheck.declared.names import LEADING


def check(table: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Note every dimension that the contract does not have and every size that its own limits exclude."""
    dims = table.get("dims")
    if dims is not None:
        _check_names(table, dims, path, problems)
    _check_ranges(table, path, problems)


def _check_names(table: Mapping[str, Any], dims: tuple[str, ...], path: str, problems: Problems) -> None:
    if LEADING in dims[1:]:
        problems.add(join(path, "dims"), f'has "{LEADING}" after the first place; leading dimensions come first')
    named = [name for name in dims if name != LEADING]
    has = f"it has {', '.join(named) or 'none with a name'}"
    for key in ("reduces", "empty"):
        for index, name in enumerate(table.get(key, ())):
            if name not in dims:
                where = f"{join(path, key)}[{index}]"
                problems.add(where, f'is "{name}", not a dimension of the contract; {has}{meant(name, named)}')
    for where, sizes in _size_tables(table, path):
        for name in sizes:
            if name not in named:
                problems.add(join(where, name), f"is not a dimension of the contract; {has}{meant(name, named)}")


def _size_tables(table: Mapping[str, Any], path: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every table of the contract whose keys are dimensions, each with its path."""
    keys = ("smallest", "largest", "sizes", "multiple", "tiles")
    production = enumerate(table.get("production", ()))
    return [
        *((join(path, key), table.get(key, {})) for key in keys),
        *((f"{join(path, 'production')}[{index}]", sizes) for index, sizes in production),
    ]


def _check_ranges(table: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Note a range without a size in it, and a size outside the range of its dimension."""
    largest = table.get("largest", {})
    for key in ("smallest", "multiple"):
        for name, size in table.get(key, {}).items():
            if size > largest.get(name, size):
                sentence = f"is {size}, above largest.{name}, which is {largest[name]}; no size is legal"
                problems.add(join(join(path, key), name), sentence)
    for name, listed in table.get("sizes", {}).items():
        bounds = {key: table.get(key, {}) for key in ("smallest", "largest", "multiple")}
        for index, size in enumerate(listed):
            if fault := _illegal(name, size, bounds):
                problems.add(f"{join(join(path, 'sizes'), name)}[{index}]", f"is {size}, {fault}")
    for index, shape in enumerate(table.get("production", ())):
        for name, size in shape.items():
            if fault := _illegal(name, size, table):
                problems.add(join(f"{join(path, 'production')}[{index}]", name), f"is {size}, {fault}")


def _illegal(name: str, size: int, table: Mapping[str, Any]) -> str:
    """Say which limit of the contract excludes a size; empty where none does."""
    smallest, largest = table.get("smallest", {}).get(name, size), table.get("largest", {}).get(name, size)
    multiple, sizes = table.get("multiple", {}).get(name, 1), table.get("sizes", {}).get(name, (size,))
    if size < smallest:
        return f"below smallest.{name}, which is {smallest}"
    if size > largest:
        return f"above largest.{name}, which is {largest}"
    if size % multiple:
        return f"not a multiple of multiple.{name}, which is {multiple}"
    if size not in sizes:
        return f"not one of sizes.{name}, which are {', '.join(map(str, sizes))}"
    return ""
