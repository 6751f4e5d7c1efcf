"""Several registries read as one: the user's own, and those that plug-ins bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opcheck.core.policy import Contract, Policy
from opcheck.declared.policy import load
from opcheck.errors import PolicyError


def load_all(paths: Sequence[Path], limits: Mapping[str, type]) -> Policy:
    """Read registries and join them; the gate and the defaults of the first hold for all.

    A later one's own defaults come, for its ops, on top of those.

    Raises:
        PolicyError: One cannot be read or says what it may not, or two declare the same op.
    """
    first, *others = (load(path, limits) for path in paths)
    ops: dict[str, Contract] = dict(first.ops)
    places = dict.fromkeys(first.ops, first.path)
    problems = []
    for policy in others:
        for name, contract in policy.ops.items():
            if name in ops:
                both = f"{name} is declared in {places[name]} and in {policy.path}"
                problems.append(f"{both}; --no-plugins leaves one out")
            ops[name] = replace(contract, overrides=(*policy.defaults, *contract.overrides))
            places[name] = policy.path
    if problems:
        raise PolicyError(tuple(problems))
    everyone = (first, *others)
    return replace(
        first,
        ops=ops,
        modules=tuple(dict.fromkeys(name for policy in everyone for name in policy.modules)),
        waivers=tuple(waiver for policy in everyone for waiver in policy.waivers),
    )
