"""The registry's modules as their source has them, without an import: what each defines, and what names lead to."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

Chain = tuple[str, ...]  # a dotted name: ("kernel", "forward")


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A name that a module of the project defines; without a name, all that the module defines."""

    module: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """What stands in no module of the project, by its full name: `("triton", "jit")`."""

    chain: Chain


Found = Node | Outside | None
_Seen = frozenset[tuple[str, str]]
_NEVER = frozenset({"opcheck", "torch", "triton"})  # never the project's own, wherever their source lies


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file of the project.

    Attributes:
        path: Its path from the registry's folder.
        package: The name against which its relative imports count.
        defined: The statements that make each name at its top level.
        effects: Its other statements there: calls, loops.
        imported: What each imported name is: a module, and a name in it or "".
        stars: Modules of which it imports everything.
    """

    name: str
    path: str
    package: str
    lines: tuple[str, ...] = ()
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    @property
    def statements(self) -> Iterator[ast.stmt]:
        """Every statement at its top level, imports left out."""
        yield from {id(item): item for items in self.defined.values() for item in items}.values()
        yield from self.effects


_Parsed = dict[tuple[str, bytes], Module]


class Project:
    """Modules, read when they are first asked for.

    Args:
        read: Returns a file by its path from the registry's folder, None where there is none.
        parsed: What was parsed of another state of the project, by path and text; most files are the same in both.

    Attributes:
        broken: Why files could not be parsed, by path.
    """

    def __init__(self, read: Callable[[str], bytes | None], parsed: _Parsed | None = None) -> None:
        self._read = read
        self.parsed: _Parsed = {} if parsed is None else parsed
        self._modules: dict[str, Module | None] = {}
        self.broken: dict[str, str] = {}

    def module(self, name: str) -> Module | None:
        """Return a module by its full name, None where the project has none of it."""
        if name not in self._modules:
            self._modules[name] = None if name.partition(".")[0] in _NEVER else self._load(name)
        return self._modules[name]

    def _load(self, name: str) -> Module | None:
        base = name.replace(".", "/")
        for path, package in ((f"{base}/__init__.py", name), (f"{base}.py", name.rpartition(".")[0])):
            if (raw := self._read(path)) is None:
                continue
            if (path, raw) in self.parsed:
                return self.parsed[path, raw]
            try:
                tree = ast.parse(raw, path)
            except (SyntaxError, ValueError, RecursionError) as error:
                self.broken[path] = str(error)
                return None
            found = Module(name=name, path=path, package=package, lines=(*raw.decode("utf-8", "replace").split("\n"),))
            _take(found, tree.body)
            self.parsed[path, raw] = found
            return found
        return None

    def find(self, module: Module, chain: Chain) -> Found:
        """Return what a dotted name means in a module; None for a builtin or what nobody defines."""
        found = self._named(module, chain[0], frozenset())
        for at, name in enumerate(chain[1:], start=1):
            match found:
                case Node(module=inner, name="") if (parent := self.module(inner)) is not None:
                    found = self._member(parent, name)
                case Outside(chain=before):
                    return Outside((*before, *chain[at:]))
                case _:
                    return found
        return found

    def _named(self, module: Module, name: str, seen: _Seen) -> Found:
        if name in module.defined:
            return Node(module.name, name)
        if (module.name, name) in seen:  # modules that import a name from each other
            return None
        seen |= {(module.name, name)}
        if name in module.imported:
            return self._imported(*module.imported[name], seen)
        stars = (self.module(star) for star in module.stars)
        return next((found for star in stars if star and (found := self._named(star, name, seen))), None)

    def _imported(self, module: str, name: str, seen: _Seen) -> Found:
        found = self.module(module)
        if found is not None:
            return self._member(found, name, seen) if name else Node(module)
        if name and self.module(f"{module}.{name}") is not None:  # from a folder without __init__.py
            return Node(f"{module}.{name}")
        return Outside((*module.split("."), *((name,) if name else ())))

    def _member(self, module: Module, name: str, seen: _Seen = frozenset()) -> Found:
        if (found := self._named(module, name, seen)) is not None:
            return found
        inner = f"{module.name}.{name}"
        return Node(inner) if self.module(inner) is not None else None


def _take(module: Module, block: Iterable[ast.stmt]) -> None:
    """Sort the statements of a module's top level, those under its conditions among them."""
    for item in block:
        match item:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                module.defined.setdefault(item.name, []).append(item)
            case ast.Import():
                for alias in item.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    module.imported[alias.asname or whole] = (whole, "")
            case ast.ImportFrom():
                _take_from(module, item)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = item.targets if isinstance(item, ast.Assign) else [item.target]
                for name in dict.fromkeys(name for target in targets for name in _roots(target)):
                    module.defined.setdefault(name, []).append(item)
            case ast.If():
                _take(module, [*item.body, *item.orelse])
            case ast.Try() | ast.TryStar():
                _take(module, [*item.body, *(inner for hand in item.handlers for inner in hand.body), *item.orelse])
            case ast.With():
                _take(module, item.body)
            case _:
                module.effects.append(item)


def _take_from(module: Module, item: ast.ImportFrom) -> None:
    source = absolute(module, item)
    for alias in item.names:
        if alias.name == "*":
            module.stars.append(source)
        else:
            module.imported[alias.asname or alias.name] = (source, alias.name)


def absolute(module: Module, item: ast.ImportFrom) -> str:
    """Return the full name of the module that an import takes from."""
    if not item.level:
        return item.module or ""
    parts = module.package.split(".")
    above = ".".join(parts[: len(parts) - item.level + 1])
    return f"{above}.{item.module}" if item.module else above


def _roots(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment makes or changes: `a` of `a`, `a.b` and `a[0]`."""
    if isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _roots(item)
        return
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a tree's nodes, each before what is in it; `ast.walk` takes three times as long."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [item for item in value if isinstance(item, ast.AST)]


def chain_of(node: ast.AST) -> Chain:
    """Return the dotted name of an expression, empty where it is another one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()
