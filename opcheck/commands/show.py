"""Show an op: contract, schema, limits, and the cases that an audit would run."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any

from opcheck.checks import limits_by_check
from opcheck.commands.audit import add_backend
from opcheck.core.facts import Facts
from opcheck.core.kernel_coverage import COVERAGE, CoverageLimits
from opcheck.core.policy import LEVELS, ByWidth, Contract, Policy, limits_for, plain
from opcheck.core.tiles import observed_tiles
from opcheck.session import Options, Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("op", metavar="OP", help="qualified name of the op")
    parser.add_argument("--level", choices=LEVELS, default="standard", help="which plan to show (default: standard)")
    add_backend(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print everything that is declared about the op."""
    options = Options(
        ops=(arguments.op,),
        registry=arguments.registry,
        backend=arguments.backend,
        level=arguments.level,
        workers=1,
        plugins=not arguments.no_plugins,
    )
    with Session.open(options) as session:
        for name, plan in session.plan().items():
            contract, facts = session.policy.ops[name], session.registry.ops[name]
            print(f"{name}\n  schema      {facts['schema']}\n  registered  {facts['place']}")
            for line in _contract(contract):
                print(f"  {line}")
            for line in _observed(session.facts.get(name, Facts()), contract):
                print(f"  {line}")
            for line in _limits(session.policy, contract):
                print(f"  {line}")
            print(f"  cases       {len(plan.cases)} at level {arguments.level}")
            for item in plan.cases:
                print(f"    {item.case.id}")
            for gap in plan.not_covered:
                print(f"  not covered {gap}")
    return 0


def _contract(contract: Contract) -> Iterator[str]:
    for item in dataclasses.fields(contract):
        value = getattr(contract, item.name)
        if item.name in ("name", "overrides") or value in ((), {}, ""):
            continue
        yield f"{item.name:<11} {_text(value)}"


def _observed(facts: Facts, contract: Contract) -> Iterator[str]:
    yield from (f"tile        {tile}" for tile in observed_tiles(facts.launches, contract))
    yield from (f"autotuned   {kernel}: {count} configurations" for kernel, count in facts.configs.items())


def _limits(policy: Policy, contract: Contract) -> Iterator[str]:
    for check, limits in limits_by_check().items():
        for dtype in contract.dtypes:
            found: Any = limits_for(limits, check, policy, contract.name, dtype)
            numbers = [f"{f.name}={_number(getattr(found, f.name), dtype)}" for f in dataclasses.fields(found)]
            if numbers:
                yield f"{check:<11} {dtype}: {', '.join(numbers)}"
    reached = limits_for(CoverageLimits, COVERAGE, policy, contract.name, "")
    yield f"{COVERAGE:<11} lines={reached.lines:g}, masks={reached.masks:g}"


def _number(value: Any, dtype: str) -> str:
    return plain(value.of(dtype) if isinstance(value, ByWidth) else value)


def _text(value: Any) -> str:
    if isinstance(value, dict) or hasattr(value, "items"):
        return ", ".join(f"{key} = {_text(item)}" for key, item in value.items())
    if isinstance(value, tuple):
        return ", ".join(_text(item) for item in value)
    return str(value)
