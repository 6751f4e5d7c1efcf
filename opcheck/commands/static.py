"""`lint --static`: registry.toml and the source of its modules, without importing them or torch."""

from __future__ import annotations

import datetime
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from opcheck.core.gate import ExitStatus, registry_problems, waiver_problems

if TYPE_CHECKING:
    from opcheck.core.policy import Policy
    from opcheck.merge.sources import Code


def lint_static(registry: Path | None) -> int:
    """Print every problem that can be seen without importing a module, and the tables of what is not declared yet."""
    from opcheck.checks import limits_by_check
    from opcheck.declared import find, load
    from opcheck.declared.draft import table
    from opcheck.merge.sources import of_head

    path = (registry or find()).resolve()
    policy = load(path, limits_by_check())
    code = of_head(path.parent, policy)
    places = {op: item.place for op, item in code.by_op.items()}
    unseen = _unseen(code, policy)
    # What is registered where the source does not say it may be any of the ops that are declared and not seen.
    declared = set(policy.ops) & set(places) if unseen else set(policy.ops)
    problems = registry_problems(declared, places, _unread(code, policy, path.parent), policy.modules)
    problems += waiver_problems(policy.waivers, datetime.date.today(), set(), whole=False)
    for problem in problems:
        print(problem, file=sys.stderr)
    if missing := sorted(set(places) - set(policy.ops)):
        print(f"# paste into {path} and complete:")
    for name in missing:
        print(table(name))
    if unseen:
        print(f"{', '.join(unseen)}: the source does not say; `opcheck lint` imports the modules", file=sys.stderr)
    if problems:
        return ExitStatus.CLOSED
    print(f"{len(policy.ops)} ops: registry.toml and the source agree; nothing was imported", file=sys.stderr)
    return ExitStatus.OK


def _unread(code: Code, policy: Policy, folder: Path) -> list[str]:
    """Return what cannot be read, is not there, or is registered twice, as sentences."""
    found = [f"{file} is not Python: {why}" for file, why in code.project.broken.items()]
    found += [
        f"there is no source of module {root} in {folder}; mend registry.modules"
        for root in code.beyond(policy)
        if not _installed(root)
    ]
    first = code.by_op
    found += [
        f"{item.place}: {item.op} is already registered at {first[item.op].place}; rename one of them"
        for item in code.registered
        if item.op and item is not first[item.op]
    ]
    return found


def _unseen(code: Code, policy: Policy) -> list[str]:
    """Return the registrations whose names are computed, and the modules that lie elsewhere."""
    computed = [f"the name registered at {item.place}" for item in code.registered if not item.op]
    return computed + [f"what {root} registers" for root in code.beyond(policy) if _installed(root)]


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None
