"""Explain a check: its law, its limits, and examples that hold and that do not."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import inspect
from typing import Any

from opcheck.checks import all_checks
from opcheck.core.policy import ByWidth, plain
from opcheck.errors import OpcheckError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("check", metavar="CHECK", nargs="?", help="name of the check; without it, all are listed")


def run(arguments: argparse.Namespace) -> int:
    """Print what the check demands and proves."""
    checks = all_checks()
    if arguments.check is None:
        for name, check in checks.items():
            print(f"{name:<13} {check.law}")
        return 0
    if arguments.check not in checks:
        close = difflib.get_close_matches(arguments.check, checks, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise OpcheckError(f"{arguments.check!r} is not a check; there are {', '.join(checks)}{hint}")
    check = checks[arguments.check]
    print(f"{check.name}: {check.law}")
    print(f"\n{inspect.getdoc(inspect.getmodule(type(check)))}")
    if check.requires:
        print(f"\nrequires: {', '.join(sorted(check.requires))}")
    fields = dataclasses.fields(check.limits)
    if fields:
        print("\nlimits (keys in registry.toml):")
    for item in fields:
        default: Any = item.default
        shown = f"narrow {default.narrow:g}, wide {default.wide:g}" if isinstance(default, ByWidth) else plain(default)
        print(f"  {item.name} = {shown}: {item.metadata.get('doc', '')}")
    print("\nexamples that it is tested on:")
    for control in check.controls():
        print(f"  {control.expect}: {control.name}")
    return 0
