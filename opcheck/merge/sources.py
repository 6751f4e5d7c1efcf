"""The code of both sides: oracles that changed, kernels and ops that nobody audits."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from opcheck.core.decision import Point
from opcheck.core.policy import Policy
from opcheck.merge import kernels, oracle
from opcheck.merge.git import Base
from opcheck.merge.modules import Module, Project
from opcheck.merge.policies import Sides
from opcheck.merge.reasons import Reasons
from opcheck.merge.registrations import Registration, registrations
from opcheck.merge.tree import module_names, python_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The registered modules of one side."""

    project: Project
    modules: tuple[Module, ...]
    registered: tuple[Registration, ...]

    @property
    def by_op(self) -> dict[str, Registration]:
        """The registrations whose op the source names."""
        return {item.op: item for item in reversed(self.registered) if item.op}

    def beyond(self, policy: Policy) -> tuple[str, ...]:
        """The registry's modules that are not below its folder."""
        broken = (path.removesuffix(".py").replace("/", ".") for path in self.project.broken)
        seen = [f"{name}." for name in (*(module.name for module in self.modules), *broken)]
        return tuple(root for root in policy.modules if not any(name.startswith(f"{root}.") for name in seen))


def of_head(folder: Path, policy: Policy) -> Code:
    """Read the modules on disk."""

    def text(path: str) -> bytes | None:
        return (folder / path).read_bytes() if (folder / path).is_file() else None

    return _code(Project(text), python_files(folder, policy.modules), policy)


def of_base(base: Base, prefix: str, policy: Policy, head: Code) -> Code:
    """Read the modules of base; what is as in head is not parsed again."""
    files = {path.removeprefix(prefix) for path in base.files if path.endswith(".py") and path.startswith(prefix)}
    return _code(Project(lambda path: base.text(prefix + path), head.project.parsed), files, policy)


def _code(project: Project, files: Collection[str], policy: Policy) -> Code:
    named = (project.module(name) for name in module_names(files, policy.modules))
    modules = tuple(module for module in named if module is not None)
    return Code(project=project, modules=modules, registered=registrations(project, modules))


def points(
    head: Code, folder: Path, sides: Sides, base: Base, reasons: Reasons, accepted: Collection[str]
) -> Iterator[Point]:
    """Yield what the code says against the merge."""
    for path, why in head.project.broken.items():
        sentence = f"{path} is not Python: {why}"
        yield Point(rule="module-broken", sentence=sentence, opens="mend it: nothing is known of what it holds")
    for item in head.registered:
        if item.op and item.op not in sides.head.ops:
            yield Point(
                rule="op-undeclared",
                op=item.op,
                sentence=f"{item.op} is registered at {item.place} and not declared in {Path(sides.head.path).name}",
                opens="declare it: `python -m opcheck lint` prints its table",
            )
    yield from kernels.points(head.project, head.modules, head.registered)
    yield from _left_out(folder, sides, reasons)
    if _moved(folder, sides, base):
        before = of_base(base, sides.prefix, sides.base, head)
        both = [name for name in sides.base.ops if name in sides.head.ops]
        meanings = oracle.Meaning.of(before.project), oracle.Meaning.of(head.project)
        yield from oracle.points(before.by_op, head.by_op, *meanings, both, reasons, accepted)


def _left_out(folder: Path, sides: Sides, reasons: Reasons) -> Iterator[Point]:
    """Yield the modules of base that are still there and that head leaves out, with whatever kernels they hold."""
    for root in sides.base.modules:
        named = any(f"{root}.".startswith(f"{name}.") for name in sides.head.modules)
        if not named and python_files(folder, (root,)):
            sentence = f"registry.modules lacks {root}, which base has and which is still there"
            yield Point(
                rule="family-removed",
                sentence=f"{sentence}: nobody looks at its kernels",
                opens='put it back or delete it, or say why: [[change]] op = "*", what = "cases", reason = "..."',
                acknowledged=reasons.of("*", "cases"),
            )


def notes(head: Code, policy: Policy) -> Iterator[str]:
    """Yield what the source does not say."""
    if unnamed := [item.place for item in head.registered if not item.op]:
        more = f" and {len(unnamed) - 1} more" if len(unnamed) > 1 else ""
        yield f"{unnamed[0]}{more}: the op's name is computed; its oracle is not compared with base's"
    for root in head.beyond(policy):
        yield f"{root} is not below the registry's folder: its kernels and oracles are not looked at"


def _moved(folder: Path, sides: Sides, base: Base) -> bool:
    """Say whether any code may differ: oracles lean on whatever they import."""
    same = base.top / sides.prefix == folder or base.top / sides.prefix.rstrip("/") == folder
    return not same or sides.base.modules != sides.head.modules or any(path.endswith(".py") for path in base.changed)
