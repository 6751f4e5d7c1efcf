"""`@triton.jit` functions of the registered modules that nothing registered leads to: nobody audits them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opcheck.core.decision import Point
from opcheck.core.kernel_coverage import PRAGMA, excludes
from opcheck.merge.modules import Module, Node, Outside, Project, chain_of
from opcheck.merge.reached import mentioned, reached
from opcheck.merge.registrations import Registration, made


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A `@triton.jit` function, named as the audit's coverage names it."""

    node: Node
    path: str
    line: int
    excluded: bool

    @property
    def name(self) -> str:
        return f"{self.node.module}.{self.node.name}"


def points(project: Project, modules: Iterable[Module], registered: Iterable[Registration]) -> Iterator[Point]:
    """Yield each kernel that no registered op reaches and that its author did not exclude."""
    kernels = [item for module in modules for item in kernels_of(project, module)]
    if not kernels:
        return
    seen = reached(project, roots(project, registered))
    for item in kernels:
        if item.node not in seen and not item.excluded:
            yield Point(
                rule="kernel-unregistered",
                sentence=f"{item.path}:{item.line}: the kernel {item.name} is launched by no registered op",
                opens=f"register the op that launches it, delete it, or mark its def `{PRAGMA}`",
            )


def roots(project: Project, registered: Iterable[Registration]) -> set[Node]:
    """Return the names that a registration, or what is added to a registered op, mentions."""
    found: set[Node] = set()
    by_module: dict[str, tuple[Module, list[Registration]]] = {}
    for item in registered:
        by_module.setdefault(item.module.name, (item.module, []))[1].append(item)
    for module, items in by_module.values():
        ops = {node for item in items if (node := made(item)) is not None}
        own = {id(item.statement) for item in items}
        found |= ops
        for statement in module.statements:
            if id(statement) in own or _adds(project, module, statement, ops):
                found |= set(mentioned(project, module, statement))
    return found


def _adds(project: Project, module: Module, statement: ast.stmt, ops: set[Node]) -> bool:
    """Say whether a statement adds to an op: `@op.register_fake`, or a call at the top level that mentions it."""
    match statement:
        case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
            return any(not ops.isdisjoint(mentioned(project, module, item)) for item in decorators)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return False
    return not ops.isdisjoint(mentioned(project, module, statement))


def kernels_of(project: Project, module: Module) -> Iterator[Kernel]:
    """Yield the kernels that a module defines: decorated, or made by a call of `triton.jit`."""
    if not any("jit" in line for line in module.lines):
        return
    for name, statements in module.defined.items():
        for item in statements:
            match item:
                case ast.FunctionDef():
                    made_by = item.decorator_list
                case ast.Assign(value=ast.Call(func=called)):
                    made_by = [called]
                case _:
                    continue
            if any(_jit(project, module, node) for node in made_by):
                yield Kernel(
                    node=Node(module.name, name), path=module.path, line=item.lineno, excluded=_excluded(module, item)
                )


def _jit(project: Project, module: Module, decorator: ast.expr) -> bool:
    chain = chain_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
    found = project.find(module, chain) if chain else None
    return isinstance(found, Outside) and found.chain[0] == "triton" and found.chain[-1] == "jit"


def _excluded(module: Module, item: ast.stmt) -> bool:
    """Say whether the comment stands behind the `def`, which may go over several lines."""
    body = getattr(item, "body", ())
    end = max(body[0].lineno, item.lineno + 1) if body else item.lineno + 1
    return any(excludes(line) for line in module.lines[item.lineno - 1 : end - 1])
