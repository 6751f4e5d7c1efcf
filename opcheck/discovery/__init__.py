"""Look at a package that knows nothing of opcheck: what it registers, what launches which kernel."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path
from typing import Any

from opcheck.discovery.found import Callable, Found, Kernel, Operator, Parameter
from opcheck.discovery.reach import Key, Reach
from opcheck.discovery.source import modules_of
from opcheck.errors import OpcheckError
from opcheck.run.failure import blame
from opcheck.run.isolate import Died, Message, Pool

__all__ = ["Found", "discover"]

# What registers operators of torch's own when it is imported, so that they are not taken for the package's.
PRELOAD = ("torch", "triton.language", "torch._dynamo", "torch.testing._internal.optests")
MOST_DEATHS = 3


def discover(package: str, *, environment: Mapping[str, str], timeout: float = 60.0) -> Found:
    """Import a package in a process of its own, read its source, and return what it has.

    Args:
        environment: Variables for that process.
        timeout: Seconds that one module may take to be imported.

    Raises:
        OpcheckError: There is no such package, or importing it fails or ends the process.
    """
    root = _root(package)
    modules, problems = modules_of(package, root)
    reach = Reach(modules=modules)
    asked = [package, *(name for name, module in modules.items() if module.makes_ops and name != package)]
    answer, failures = _imported(package, asked, environment, timeout)
    reach.bodies = {item["name"]: _bodies(item, reach) for item in answer}
    operators = tuple(_operator(item, reach) for item in answer)
    return Found(
        package=package,
        distribution=_distribution(package),
        operators=operators,
        callables=tuple(_callables(reach, {item.body for item in operators})),
        kernels=tuple(_kernels(reach)),
        problems=(*problems, *failures),
    )


def _root(package: str) -> Path:
    """Return the folder, or the one file, of a package."""
    try:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
    except (ImportError, ValueError):
        spec = None
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec is not None else []
    for place in places:
        if place and Path(place).exists():
            return Path(place)
    raise OpcheckError(f"there is no package {package!r} to import{_meant(package)}")


def _meant(package: str) -> str:
    """Say which package a distribution has, where its name was given."""
    try:
        name = distribution(package).name
    except (PackageNotFoundError, ValueError):
        return "; install it into the environment of opcheck first"
    held = sorted(key for key, names in packages_distributions().items() if name in names and key.isidentifier())
    return f"; the distribution {name} has {', '.join(held) or 'none'}"


def _distribution(package: str) -> str:
    names = packages_distributions().get(package, [])
    return f"{names[0]} {version(names[0])}" if names else ""


def _imported(
    package: str, asked: list[str], environment: Mapping[str, str], timeout: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the operators that the modules register, and a sentence for each module that cannot be imported."""
    killed: dict[str, str] = {}
    for _ in range(MOST_DEATHS):
        pool = Pool(
            entry="opcheck.discovery.imported:serve", preload=PRELOAD, require=("torch",), environment=environment,
            size=1, timeout=timeout, payload={},
        )  # fmt: skip
        with pool:
            importing, answer, death = package, None, None
            for event in pool.run([{"modules": [name for name in asked if name not in killed]}]):
                match event:
                    case Message(body={"importing": name}):
                        importing = name
                    case Message(body={"operators": _} as body):
                        answer = body
                    case Died():
                        death = event.death
        if answer is not None:
            failures = {**killed, **answer["failures"]}
            if package in failures:
                raise OpcheckError(f"importing {package} raised {failures[package]}")
            return answer["operators"], [f"{name} was not imported: {why}" for name, why in failures.items()]
        where, _ = blame(death.log if death else "")
        killed[importing] = f"it ended the process{f' at {where}' if where else ''}: {death.reason if death else ''}"
        if importing == package:
            break
    name, why = next(reversed(killed.items()))
    raise OpcheckError(f"importing {name}: {why}")


def _operator(item: Mapping[str, Any], reach: Reach) -> Operator:
    bodies = reach.bodies[item["name"]]
    launches = sorted({name for key in bodies for name in reach.kernels(key)})
    body = item["body"] or next((".".join(key) for key in bodies), "")
    parameters = tuple(Parameter(**given) for given in item["parameters"])
    known = {**item, "parameters": parameters, "kernels": tuple(item["kernels"]), "body": body}
    return Operator(**known, launches=tuple(launches))


def _bodies(item: Mapping[str, Any], reach: Reach) -> tuple[Key, ...]:
    """Return an operator's Python functions: the one that torch has, or those that are registered by its name."""
    if item["body"]:
        return tuple(key for key, _ in reach.all() if ".".join(key) == item["body"])
    return reach.implementations(item["name"])


def _callables(reach: Reach, bodies: set[str]) -> list[Callable]:
    found = []
    for key, made in reach.all():
        name = ".".join(key)
        launched = reach.launched(key) if made.kind == "function" and "." not in key[1] else ()
        if made.kind == "autograd" or (launched and name not in bodies):
            found.append(
                Callable(
                    name=name,
                    kind="autograd" if made.kind == "autograd" else "function",
                    place=f"{reach.modules[key[0]].file}:{made.line}",
                    parameters=made.parameters,
                    launches=reach.kernels(key),
                )
            )
    return sorted(found, key=lambda item: (item.kind, item.name))


def _kernels(reach: Reach) -> list[Kernel]:
    """Return the kernels that something launches; a jitted function that only kernels call is part of them."""
    launched = {name for key, made in reach.all() if made.kind != "kernel" for name in reach.kernels(key)}
    return [
        Kernel(name=".".join(key), place=f"{reach.modules[key[0]].file}:{made.line}", tuned=made.tuned)
        for key, made in reach.all()
        if made.kind == "kernel" and ".".join(key) in launched
    ]
