"""Say what this machine can audit: versions, devices, and whether the interpreter can be trusted."""

from __future__ import annotations

import argparse

from opcheck.core.gate import ExitStatus
from opcheck.run.isolate import Death, Pool
from opcheck.session import workers_environment
from opcheck.session.plugins import plugins
from opcheck.worker import PRELOAD


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""


def run(arguments: argparse.Namespace) -> int:
    """Print what a worker finds out about this machine."""
    pool = Pool(
        entry="opcheck.run.checkup:serve",
        preload=PRELOAD,
        environment=workers_environment("cpu"),
        size=1,
        timeout=120.0,
        payload={},
    )
    with pool:
        for module, failure in pool.preload_failures.items():
            print(f"MISSING  {module}: {failure}")
        answer = pool.run_once({})
    if isinstance(answer, Death):
        print(f"the check-up itself {answer.reason}\n{answer.log}")
        return ExitStatus.INTERNAL
    for plugin in plugins(wanted=not arguments.no_plugins):
        print(f"plug-in  {plugin}: {plugin.path}")
    healthy = True
    for body in answer:
        for line in body["lines"]:
            print(line)
        healthy = healthy and body["healthy"]
    return ExitStatus.OK if healthy else ExitStatus.CLOSED
