"""What code leads to: the names of the project that a statement mentions, and all that those mention."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from opcheck.merge.modules import Module, Node, Project, absolute, chain_of, nodes


def reached(project: Project, starts: Iterable[Node]) -> frozenset[Node]:
    """Return every name that is mentioned by what the given names are, and so on."""
    found: set[Node] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        waiting += _inside(project, node)
    return frozenset(found)


def _inside(project: Project, node: Node) -> Iterator[Node]:
    module = project.module(node.module)
    if module is None:
        return
    if not node.name:  # a module that is handed on as a whole
        yield from (Node(module.name, name) for name in module.defined)
        return
    for statement in module.defined.get(node.name, ()):
        yield from mentioned(project, module, statement)


def mentioned(project: Project, module: Module, tree: ast.AST) -> Iterator[Node]:
    """Yield the names of the project that code mentions, imports inside functions among them."""
    inner: set[int] = set()
    for node in nodes(tree):
        match node:
            case ast.Attribute() | ast.Name() if id(node) not in inner:
                inner |= _chain(node)
                chain = chain_of(node)
                if chain and isinstance(found := project.find(module, chain), Node):
                    yield found
            case ast.ImportFrom():
                source = project.module(absolute(module, node))
                if source is not None:
                    yield from _taken(project, source, node)
            case ast.Import():
                yield from (Node(alias.name) for alias in node.names if project.module(alias.name) is not None)


def _taken(project: Project, source: Module, node: ast.ImportFrom) -> Iterator[Node]:
    for alias in node.names:
        inner = f"{source.name}.{alias.name}"
        if isinstance(found := project.find(source, (alias.name,)), Node):
            yield found
        elif project.module(inner) is not None:
            yield Node(inner)


def _chain(node: ast.AST) -> set[int]:
    """Return the nodes of a dotted name, so that its parts are not looked at again."""
    found = {id(node)}
    while isinstance(node, ast.Attribute):
        node = node.value
        found.add(id(node))
    return found
