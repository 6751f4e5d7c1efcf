"""What an op is held to, and whether it changed: the code of reference, golden, samples and terms, by its meaning.

The code is compared as a tree in which each name of the project stands for what it is. So comments, docstrings,
annotations, layout, and where functions stand and how they are called, make no difference.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from opcheck.core.decision import Point
from opcheck.merge.modules import Module, Node, Outside, Project, chain_of, nodes
from opcheck.merge.reasons import Reasons
from opcheck.merge.registrations import ROLES, Registration

_UNSEEN = frozenset({"annotation", "returns", "type_comment", "type_params", "ctx", "kind"})


@dataclass(slots=True)
class Meaning:
    """Digests of code in one state of the project."""

    project: Project
    _known: dict[Node, str]

    @classmethod
    def of(cls, project: Project) -> Meaning:
        """Return the meanings of a project's code."""
        return cls(project, {})

    def expression(self, module: Module, tree: ast.AST) -> str:
        """Return the digest of an expression or a statement."""
        return _digest(self._text(module, tree, _locals(tree)))

    def node(self, node: Node) -> str:
        """Return the digest of what a name of the project is."""
        if node not in self._known:
            self._known[node] = "itself"  # a function that calls itself means the same under another name
            module = self.project.module(node.module)
            statements = module.defined.get(node.name, []) if module is not None else []
            self._known[node] = _digest(
                "".join(self._text(module, item, _locals(item), top=True) for item in statements if module is not None)
            )
        return self._known[node]

    def _text(self, module: Module, tree: object, local: frozenset[str], *, top: bool = False) -> str:
        if isinstance(tree, list):
            return f"[{','.join(self._text(module, item, local) for item in tree)}]"
        if not isinstance(tree, ast.AST):
            return repr(tree)
        if isinstance(tree, ast.Name | ast.Attribute) and (meant := self._meant(module, chain_of(tree), local)):
            return meant
        skipped = _UNSEEN | {"name"} if top else _UNSEEN
        parts = [
            self._text(module, _code(value) if name == "body" else value, local)
            for name, value in ast.iter_fields(tree)
            if name not in skipped
        ]
        if top and isinstance(tree, ast.Assign | ast.AnnAssign | ast.AugAssign):
            parts = [self._text(module, tree.value, local)]
        return f"{type(tree).__name__}({','.join(parts)})"

    def _meant(self, module: Module, chain: tuple[str, ...], local: frozenset[str]) -> str:
        """Return what a dotted name stands for: a digest, or the full name of what stands outside of the project."""
        if not chain or chain[0] in local:
            return ""
        match self.project.find(module, chain):
            case Node(name="") | None:
                return ""
            case Node() as node:
                return f"<{self.node(node)}>"
            case Outside(chain=full):
                return f"<{'.'.join(full)}>"


def points(
    base: Mapping[str, Registration],
    head: Mapping[str, Registration],
    before: Meaning,
    after: Meaning,
    ops: Iterable[str],
    reasons: Reasons,
    accepted: Iterable[str],
) -> Iterator[Point]:
    """Yield each op whose oracle is not what it was in base.

    Args:
        base, head: The registrations by op.
        ops: The ops that both declare.
        accepted: Ops whose changed oracle a reviewer accepts.
    """
    taken = frozenset(accepted)
    for op in ops:
        was, now = base.get(op), head.get(op)
        if was is None:
            continue  # nothing to be compared with, and no promise that it had been
        if now is None:
            yield _hidden(op, was, taken, reasons)
        elif changed := [role for role in ROLES if _role(after, now, role) != _role(before, was, role)]:
            places = ", ".join(f"{role} ({_place(after.project, now, role)})" for role in changed)
            target = (
                "and so did its target" if _target(after, now) != _target(before, was) else "and its target did not"
            )
            yield Point(
                rule="oracle-changed",
                op=op,
                sentence=f"{op}: what it is held to changed, {target}: {places}",
                opens=f"have a reviewer compare it with the formula, and acknowledge it: {_how(op)}",
                acknowledged=_by(op, taken, reasons),
            )


def _role(meaning: Meaning, item: Registration, role: str) -> str:
    given = item.roles.get(role)
    none = given is None or (isinstance(given, ast.Constant) and given.value is None)
    return "" if none or given is None else meaning.expression(item.module, given)


def _target(meaning: Meaning, item: Registration) -> str:
    target = item.target
    if isinstance(target, ast.FunctionDef):  # without the decorator, which names the oracle
        body = ast.Module(body=target.body, type_ignores=[])
        return meaning.expression(item.module, body)
    return meaning.expression(item.module, target)


def _hidden(op: str, was: Registration, accepted: frozenset[str], reasons: Reasons) -> Point:
    return Point(
        rule="oracle-hidden",
        op=op,
        sentence=f"{op}: its registration cannot be read any more without running it; in base it stands in {was.place}",
        opens=f'register it by its name in quotes, @opcheck.register("{op}", ...), or acknowledge it: {_how(op)}',
        acknowledged=_by(op, accepted, reasons),
    )


def _how(op: str) -> str:
    return f'--accept-oracle {op}, or [[change]] op = "{op}", what = "oracle", reason = "..."'


def _by(op: str, accepted: frozenset[str], reasons: Reasons) -> str:
    return reasons.of(op, "oracle") or ("accepted by --accept-oracle" if op in accepted else "")


def _place(project: Project, item: Registration, role: str) -> str:
    """Return where what a role is given stands."""
    if role not in item.roles:
        return "gone"
    found = project.find(item.module, chain) if (chain := chain_of(item.roles[role])) else None
    module = project.module(found.module) if isinstance(found, Node) else None
    if module is not None and isinstance(found, Node) and found.name in module.defined:
        return f"{module.path}:{module.defined[found.name][0].lineno}"
    return f"{item.module.path}:{item.roles[role].lineno}"


def _code(body: object) -> object:
    """Return a block without its docstring."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def _locals(tree: ast.AST) -> frozenset[str]:
    """Return the names that a function makes itself: its parameters, and what it assigns."""
    if isinstance(tree, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return frozenset()
    found = {node.arg for node in nodes(tree) if isinstance(node, ast.arg)}
    stored = (node for node in nodes(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    return frozenset(found | {node.id for node in stored})


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
