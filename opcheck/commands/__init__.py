"""The subcommands of the command line: one file each, with `add_arguments` and `run`."""

from __future__ import annotations

from types import ModuleType

from opcheck.commands import audit, discover, doctor, explain, lint, list, new, repro, show

COMMANDS: tuple[ModuleType, ...] = (audit, list, show, explain, repro, lint, new, discover, doctor)
