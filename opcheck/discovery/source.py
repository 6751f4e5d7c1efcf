"""Read a package's source, without importing it: its functions, what each refers to, and which are kernels."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from opcheck.discovery.found import Parameter

Kind = Literal["kernel", "autograd", "function", "class"]
_MAKES_OPS = frozenset({"custom_op", "triton_op", "Library", "define", "register_kernel", "register_custom_op"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function or class of a module.

    Attributes:
        decorated: The texts among its decorators' arguments, names of operators among them.
        refers: Dotted names that its body uses, as it writes them.
        launches: Names that it launches: `name[grid](...)` or `wrap_triton(name)`.
    """

    name: str
    kind: Kind
    line: int
    parameters: tuple[Parameter, ...] = ()
    decorated: tuple[str, ...] = ()
    tuned: bool = False
    refers: frozenset[str] = frozenset()
    launches: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class Module:
    """One file.

    Attributes:
        imports: What the names mean that it imports.
        implements: Names of operators with what it gives for them, as in `register_kernel("ns::op", "xpu")(function)`.
        makes_ops: Whether importing it may register operators.
    """

    name: str
    file: str
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    implements: list[tuple[str, str]] = field(default_factory=list)
    makes_ops: bool = False


def modules_of(package: str, root: Path) -> tuple[dict[str, Module], tuple[str, ...]]:
    """Return the modules of a package by name, and a sentence for each file that is no Python of this version."""
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    base = root if root.is_dir() else root.parent
    found, problems = {}, []
    for file in files:
        inside = file.relative_to(base)
        parts = list(inside.with_suffix("").parts)
        if not all(part.isidentifier() for part in parts):
            continue
        is_package = parts[-1] == "__init__"
        name = ".".join([package, *(parts[:-1] if is_package else parts)]) if root.is_dir() else package
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the package's own escapes
                tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError) as error:
            problems.append(f"{inside} cannot be read: {error}")
            continue
        found[name] = _Reader(name, str(inside), is_package).read(tree)
    return found, tuple(problems)


class _Reader:
    def __init__(self, name: str, file: str, is_package: bool) -> None:
        self.module = Module(name=name, file=file)
        self.package = name if is_package else name.rpartition(".")[0]
        self.constants: dict[str, str] = {}

    def read(self, tree: ast.Module) -> Module:
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self.constants[statement.targets[0].id] = self._text(statement.value)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self._import_from(node)
            elif isinstance(node, ast.Import):
                for item in node.names:
                    self.module.imports[item.asname or item.name.partition(".")[0]] = (
                        item.name if item.asname else item.name.partition(".")[0]
                    )
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and node.args:
                given = dotted(node.args[0])
                self.module.implements += [(text, given) for text in self._texts([node.func]) if given]
            elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _MAKES_OPS:
                self.module.makes_ops = True
        self._define(tree.body, "")
        return self.module

    def _import_from(self, node: ast.ImportFrom) -> None:
        origin = node.module or ""
        if node.level:
            base = self.package.split(".")
            base = base[: len(base) - node.level + 1]
            origin = ".".join([*base, *([origin] if origin else [])])
        for item in node.names:
            self.module.imports[item.asname or item.name] = f"{origin}.{item.name}"

    def _define(self, body: list[ast.stmt], prefix: str) -> None:
        """Find definitions, those under `if` and `try` and inside of functions too."""
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{node.name}"
                made = self._class(node, name) if isinstance(node, ast.ClassDef) else self._function(node, name)
                self.module.definitions.setdefault(name, made)
                if not isinstance(node, ast.ClassDef):
                    self._define(node.body, f"{name}.")
                continue
            for part in ("body", "orelse", "finalbody"):
                self._define([item for item in getattr(node, part, ()) if isinstance(item, ast.stmt)], prefix)
            for handler in getattr(node, "handlers", ()):
                self._define(handler.body, prefix)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Definition:
        names = [dotted(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list]
        kernel = any(self._meaning(item) in ("triton.jit", "triton.runtime.jit.jit") or item.endswith("gluon.jit")
                     for item in names)  # fmt: skip
        return Definition(
            name=name,
            kind="kernel" if kernel else "function",
            line=node.lineno,
            parameters=tuple(_parameters(node, skip=0)),
            decorated=tuple(self._texts(node.decorator_list)),
            tuned=any(item.rpartition(".")[2] == "autotune" for item in names),
            refers=frozenset(_refers(node)),
            launches=frozenset(_launches(node)),
        )

    def _class(self, node: ast.ClassDef, name: str) -> Definition:
        autograd = any(self._meaning(dotted(base)).endswith("autograd.Function") for base in node.bases)
        methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
        forward = methods.get("forward")
        first = [item.arg for item in forward.args.args[:2]] if forward is not None else []
        # `ctx` comes first, after `cls` in a class method; with a setup_context of its own, forward takes none.
        skip = first.index("ctx") + 1 if "ctx" in first else int("setup_context" not in methods)
        return Definition(
            name=name,
            kind="autograd" if autograd else "class",
            line=node.lineno,
            parameters=tuple(_parameters(forward, skip=skip)) if autograd and forward is not None else (),
            refers=frozenset(_refers(node)),
            launches=frozenset(_launches(node)),
        )

    def _meaning(self, name: str) -> str:
        """Return what a dotted name means by the module's imports."""
        head, _, rest = name.partition(".")
        full = self.module.imports.get(head, head)
        full = f"{full}.{rest}" if rest else full
        return full.replace("torch.autograd.function.Function", "torch.autograd.Function")

    def _texts(self, decorators: list[ast.expr]) -> Iterator[str]:
        for item in decorators:
            if isinstance(item, ast.Call):
                yield from (text for argument in item.args if (text := self._text(argument)))

    def _text(self, node: ast.expr) -> str:
        """Return the text that an expression is, a name or an f-string of names too; empty where it is none."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name):
            return self.constants.get(node.id, "")
        if isinstance(node, ast.JoinedStr):
            parts = [self._text(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
            return "".join(parts) if all(parts) else ""
        return ""


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` of a chain of attributes that starts at a name, else nothing."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _refers(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute | ast.Name) and (name := dotted(inner)):
            yield name


def _launches(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Call):
            continue
        if isinstance(inner.func, ast.Subscript) and (name := dotted(inner.func.value)):
            yield name
        elif dotted(inner.func).rpartition(".")[2] in ("wrap_triton", "capture_triton") and inner.args:
            yield dotted(inner.args[0])


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef, *, skip: int) -> Iterator[Parameter]:
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    pairs: Mapping[ast.arg, ast.expr | None] = {
        **dict(zip(positional, defaults, strict=True)),
        **dict(zip(given.kwonlyargs, given.kw_defaults, strict=True)),
    }
    for item, default in list(pairs.items())[skip:]:
        yield Parameter(
            name=item.arg,
            type=ast.unparse(item.annotation) if item.annotation is not None else "",
            default=ast.unparse(default) if default is not None else "",
        )
