"""One file, one check: found by walking this package, pure, and each with its own proof."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import cast

from opcheck.checks.protocol import Check


@cache
def all_checks() -> Mapping[str, Check]:
    """Return every check by name, those that others require first."""
    found: dict[str, Check] = {}
    for info in pkgutil.iter_modules(__path__):
        check = getattr(importlib.import_module(f"{__name__}.{info.name}"), "check", None)
        if check is not None:
            found[check.name] = cast(Check, check)
    ordered: dict[str, Check] = {}
    while len(ordered) < len(found):
        ready = [n for n in sorted(found) if n not in ordered and found[n].requires <= ordered.keys()]
        if not ready:
            raise ImportError(f"the checks {sorted(found.keys() - ordered.keys())} require each other or a missing one")
        ordered.update((name, found[name]) for name in ready)
    return ordered


def limits_by_check() -> dict[str, type]:
    """Return each check's class of limits, for reading `registry.toml`."""
    return {name: check.limits for name, check in all_checks().items()}
