"""Check registry.toml and the registrations against each other, without running a kernel."""

from __future__ import annotations

import argparse
import sys

from opcheck.commands.audit import add_backend
from opcheck.core.gate import ExitStatus
from opcheck.session import Options, Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_backend(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print every problem, and the TOML table of each op that is not declared yet."""
    options = Options(
        registry=arguments.registry, backend=arguments.backend, workers=1, plugins=not arguments.no_plugins
    )
    with Session.open(options) as session:
        problems = session.problems
        missing = sorted(set(session.registry.ops) - set(session.policy.ops))
        for problem in problems:
            print(problem, file=sys.stderr)
        if missing:
            print(f"# paste into {session.policy.path} and complete:")
        for name in missing:
            print(session.registry.ops[name]["draft"])
    if problems:
        return ExitStatus.CLOSED
    print(f"{len(session.policy.ops)} ops: registry.toml and the registrations agree", file=sys.stderr)
    return ExitStatus.OK
