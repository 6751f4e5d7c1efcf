"""List the ops that are registered and declared."""

from __future__ import annotations

import argparse

from tabulate import tabulate

from opcheck.commands.audit import add_backend
from opcheck.session import Options, Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_backend(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line an op."""
    options = Options(
        registry=arguments.registry, backend=arguments.backend, workers=1, plugins=not arguments.no_plugins
    )
    with Session.open(options) as session:
        rows = []
        for name in session.ops:
            contract, facts = session.policy.ops[name], session.registry.ops[name]
            backward = "no (mutates)" if facts["mutated"] else "yes"
            rows.append((name, contract.kind, ", ".join(contract.dtypes), backward, facts["place"]))
        print(tabulate(rows, headers=("Op", "Kind", "Dtypes", "Backward", "Registered at")))
        for problem in session.problems:
            print(f"CLOSED  {problem}")
    return 0
