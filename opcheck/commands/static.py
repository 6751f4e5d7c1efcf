"""`lint --static`: registry.toml and the source of its modules, without importing them or torch."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from opcheck.core.gate import ExitStatus, registry_problems, waiver_problems


def lint_static(registry: Path | None) -> int:
    """Print every problem that can be seen without importing a module, and the tables of what is not declared yet."""
    from opcheck.checks import limits_by_check
    from opcheck.declared import find, load
    from opcheck.declared.draft import table
    from opcheck.declared.sources import registrations

    path = (registry or find()).resolve()
    policy = load(path, limits_by_check())
    found = registrations(policy.modules, path.parent)
    # What is registered under a computed name may be any of those that are declared and not seen.
    declared = set(policy.ops) & set(found.places) if found.computed else set(policy.ops)
    problems = registry_problems(declared, found.places, found.problems, policy.modules)
    problems += waiver_problems(policy.waivers, datetime.date.today(), set(), whole=False)
    for problem in problems:
        print(problem, file=sys.stderr)
    if missing := sorted(set(found.places) - set(policy.ops)):
        print(f"# paste into {path} and complete:")
    for name in missing:
        print(table(name))
    if found.computed:
        print(f"names computed at {', '.join(found.computed)}: `opcheck lint` imports the modules", file=sys.stderr)
    if problems:
        return ExitStatus.CLOSED
    print(f"{len(policy.ops)} ops: registry.toml and the source agree; nothing was imported", file=sys.stderr)
    return ExitStatus.OK
