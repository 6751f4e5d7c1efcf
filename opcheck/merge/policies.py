"""The policies of both sides: head's from its file, base's from git, and the gate's, which is never head's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from opcheck.core.policy import GatePolicy, Policy
from opcheck.core.schema import Problems
from opcheck.declared import policy_of, shipping
from opcheck.declared.file import document, document_of
from opcheck.errors import PolicyError
from opcheck.merge.git import Base

Limits = Mapping[str, type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Head and base as their registries have them.

    Attributes:
        document: Head's `registry.toml` as `tomllib` reads it.
        base: Base's policy; one without ops where base has no registry.
        gate: The policy that decides: that of base as it is now, even where head left it long ago.
        prefix: The folder of base's registry from the repository's root, with a `/` behind it unless it is the root.
        notes: What a reader should know about where they come from.
    """

    head: Policy
    document: Mapping[str, Any]
    base: Policy
    gate: GatePolicy
    prefix: str
    notes: tuple[str, ...] = ()


def read(path: Path, base: Base, limits: Limits) -> Sides:
    """Read both sides.

    Raises:
        PolicyError: A registry is not right; of base's it is said that it is base's.
    """
    table = document(path)
    head = policy_of(table, limits, path)
    here = path.relative_to(base.top).as_posix()
    there = base.moved(here)
    prefix = f"{parent}/" if (parent := PurePosixPath(there or here).parent.as_posix()) != "." else ""
    notes = [f"{base.ref} has {base.behind} commits that head has not: what is judged is head, not the merge"] * (
        base.behind > 0
    )
    raw = base.text(there) if there else None
    if raw is None:
        notes.append(f"{base} has no {here}: all of it is new, and the gate's own policy is opcheck's")
        gate = replace(GatePolicy(), backends=head.gate.backends)
        return Sides(
            head=head, document=table, base=Policy(modules=head.modules), gate=gate, prefix=prefix, notes=tuple(notes)
        )
    if there != here:
        notes.append(f"{here} was {there} in {base}")
    before = _of_base(raw, path.name, base, limits)
    tip = base.text(there, tip=True) if base.tip != base.fork else None
    gate = before.gate if tip is None else _gate(tip, path.name, base)
    if gate != head.gate:
        notes.append("head changes [gate]: this decision is by base's, the next one after the merge by head's")
    return Sides(head=head, document=table, base=before, gate=gate, prefix=prefix, notes=tuple(notes))


def _of_base(raw: bytes, name: str, base: Base, limits: Limits) -> Policy:
    try:
        return policy_of(document_of(raw, name), limits, Path(name))
    except PolicyError as error:
        raise _refused(str(base), error.problems) from None


def _gate(raw: bytes, name: str, base: Base) -> GatePolicy:
    """Return the gate's policy alone: the rest of a base that went on may be for a later opcheck than head's."""
    problems = Problems(name)
    try:
        read = shipping.GATE.read(document_of(raw, name).get("gate", {}), "gate", problems)
    except PolicyError as error:
        raise _refused(base.ref, error.problems) from None
    if problems.sentences:
        raise _refused(base.ref, problems.sentences)
    gate: GatePolicy = read
    return gate


def _refused(base: str, problems: Iterable[str]) -> PolicyError:
    told = "\n".join(problems)
    return PolicyError((f"{base} cannot be compared with; mend it there, or name another base with --base:\n{told}",))
