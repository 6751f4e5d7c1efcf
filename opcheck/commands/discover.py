"""List what a package registers and which of its functions launch which kernel; draft the entry of one of them."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator

from opcheck.commands.audit import add_timeout
from opcheck.commands.streams import show
from opcheck.core.gate import ExitStatus
from opcheck.discovery import Found, discover
from opcheck.discovery.draft import draft
from opcheck.discovery.found import Callable, Operator, Parameter
from opcheck.session import workers_environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("package", metavar="PACKAGE", help="an installed package, as it is imported")
    parser.add_argument("--draft", metavar="NAME", help="print the entry of an op or function to complete, and stop")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_timeout(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what the package has; 5 where that is nothing."""
    found = discover(arguments.package, environment=workers_environment("cpu"), timeout=arguments.timeout)
    if arguments.draft:
        show(draft(found, arguments.draft))
        return ExitStatus.OK
    if arguments.format == "json":
        show(json.dumps(dataclasses.asdict(found), indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    else:
        show("".join(f"{line}\n" for line in lines(found)))
    return ExitStatus.OK if found.operators or found.callables or found.kernels else ExitStatus.NOTHING


def lines(found: Found) -> Iterator[str]:
    """Yield the report."""
    functions = [item for item in found.callables if item.kind == "autograd"]
    launchers = [item for item in found.callables if item.kind == "function"]
    counts = (
        _count(len(found.operators), "operator"),
        _count(len(functions), "autograd.Function"),
        f"{_count(len(launchers), 'other function')} launching kernels",
        _count(len(found.kernels), "Triton kernel"),
    )
    yield f"{found.distribution or found.package}: {', '.join(counts)}"
    if found.operators:
        yield "\noperators"
        for operator in found.operators:
            yield from _operator(operator)
    for title, items in (("autograd functions", functions), ("other functions that launch kernels", launchers)):
        if items:
            yield f"\n{title}"
            for item in items:
                yield from _callable(item)
    if found.kernels:
        yield "\nkernels"
        yield from (f"  {item.name}  {item.place}{'  autotuned' * item.tuned}" for item in found.kernels)
    if found.problems:
        yield "\nnot looked at"
        yield from (f"  {problem}" for problem in found.problems)


def _operator(item: Operator) -> Iterator[str]:
    yield f"  {item.schema}"
    facts = [
        f"kernels: {', '.join(item.kernels) or 'none here'}",
        "has a fake" if item.fake else "no fake",
        "has a backward" if item.autograd else "no backward",
        f"launches {_names(item.launches)}" if item.launches else "launches nothing that is seen",
    ]
    yield f"    {'; '.join(facts)}"


def _callable(item: Callable) -> Iterator[str]:
    yield f"  {item.name}({', '.join(map(_parameter, item.parameters))})  {item.place}"
    yield f"    launches {_names(item.launches)}" if item.launches else "    launches nothing that is seen"


def _parameter(item: Parameter) -> str:
    return f"{item.name}={item.default}" if item.default else item.name


def _names(kernels: tuple[str, ...]) -> str:
    return ", ".join(name.rpartition(".")[2] for name in kernels)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
