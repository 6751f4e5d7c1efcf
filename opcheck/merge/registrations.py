"""Where ops are registered, as the source says it: `opcheck.register("ns::op", ...)` and `opcheck.adopt(...)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from opcheck.merge.modules import Module, Node, Outside, Project, chain_of, nodes

REGISTER, ADOPT = ("opcheck", "register"), ("opcheck", "adopt")
ROLES = ("reference", "golden", "samples", "terms")  # what an op is held to


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One call that registers an op.

    Attributes:
        op: Its qualified name; empty where the source does not say it in so many words.
        line: Of the call.
        roles: The expressions that it is given as oracle, by parameter.
        target: What is audited: the decorated function, or what `adopt` is given.
        statement: The statement that the call stands in.
    """

    op: str
    module: Module
    line: int
    statement: ast.stmt
    target: ast.AST
    roles: Mapping[str, ast.expr] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Of the call: `file:line`, the path from the registry's folder."""
        return f"{self.module.path}:{self.line}"


def registrations(project: Project, modules: Iterable[Module]) -> tuple[Registration, ...]:
    """Return every registration in the modules, in their order."""
    return tuple(found for module in modules for found in _in(project, module))


def _in(project: Project, module: Module) -> Iterator[Registration]:
    if not any("register" in line or "adopt" in line for line in module.lines):
        return
    for statement in module.statements:
        for call in (node for node in nodes(statement) if isinstance(node, ast.Call)):
            found = project.find(module, chain) if (chain := chain_of(call.func)) else None
            if not isinstance(found, Outside) or found.chain not in (REGISTER, ADOPT):
                continue
            given = {item.arg: item.value for item in call.keywords if item.arg}
            adopted = found.chain == ADOPT
            yield Registration(
                op=_name(given.get("name"), call, adopted=adopted),
                module=module,
                line=call.lineno,
                statement=statement,
                target=call.args[0] if adopted and call.args else statement,
                roles={role: given[role] for role in ROLES if role in given},
            )


def _name(given: ast.expr | None, call: ast.Call, *, adopted: bool) -> str:
    """Return the op's name: in words, or that of the `torch.ops.ns.op` that is adopted."""
    stated = given if given is not None else call.args[0] if call.args else None
    if isinstance(stated, ast.Constant) and isinstance(stated.value, str):
        return stated.value
    chain = chain_of(stated) if adopted and stated is not None else ()
    if chain[:2] != ("torch", "ops") or len(chain) < 4:
        return ""
    return f"{chain[2]}::{'.'.join(chain[3:])}".removesuffix(".default")


def made(registration: Registration) -> Node | None:
    """Return the name under which a registered op stands in its module."""
    match registration.statement:
        case (
            ast.FunctionDef(name=name)
            | ast.Assign(targets=[ast.Name(id=name)])
            | ast.AnnAssign(target=ast.Name(id=name))
        ):
            return Node(registration.module.name, name)
    return None
