"""The subcommands of the command line: one file each, with `add_arguments` and `run`; imported when they are asked."""

from __future__ import annotations

import importlib
from types import ModuleType

NAMES = ("audit", "gate", "list", "show", "explain", "repro", "lint", "new", "discover", "doctor")


def command(name: str) -> ModuleType:
    """Return the module of a subcommand."""
    return importlib.import_module(f"{__name__}.{name}")
