"""Draft the entry of one thing that was found: Python that adopts it, and its table for registry.toml."""

from __future__ import annotations

import difflib
import re

from opcheck.core.policy import KINDS
from opcheck.discovery.found import Callable, Found, Operator, Parameter
from opcheck.errors import UnknownOp

#: The line between the two halves of a draft.
TABLE = "# registry.toml"
_INTEGERS = re.compile(r"(^|_)(idx|index|indices|ids?|labels?|targets?|lens?|lengths|offsets|seqlens|routing|map)($|_)")
_PLAIN = {"int": "1", "SymInt": "1", "float": "1.0", "number": "1.0", "bool": "False", "str": '""', "Scalar": "1.0"}


def draft(found: Found, name: str) -> str:
    """Return the draft of what goes by a name: an operator's, or the dotted name of a callable or its end.

    Raises:
        UnknownOp: Nothing, or more than one thing, goes by it.
    """
    item = _chosen(found, name)
    lines = ", ".join(name.rpartition(".")[2] for name in item.launches) or "nothing that is seen"
    given = [item for item in item.parameters if not item.default]
    head = f'"""Adopt {item.name} of {found.distribution or found.package}.\n\nIt launches {lines}.\n"""'
    entry = _entry(item)
    if isinstance(item, Operator):
        imports = [f"import {item.module}  # noqa: F401 - registers it"]
    else:
        module, _, attribute = item.name.rpartition(".")
        imports = [f"from {module} import {attribute}"]
    names = ", ".join(_signature(parameter) for parameter in item.parameters)
    parts = [
        head,
        "\n".join(["import torch", *imports, "from opcheck import Case, Sample, adopt"]),
        f"def reference({names}):\n"
        f'    raise NotImplementedError("the formula in PyTorch, same element types in and out as the op")',
        "def samples(case: Case) -> Sample:\n"
        + "    return Sample(\n"
        + "".join(f"        {_sampled(parameter)}\n" for parameter in given)
        + "    )",
        entry,
    ]
    return "\n\n".join(parts[:2]) + "\n\n\n" + "\n\n\n".join(parts[2:]) + "\n\n" + _table(registered_as(found, item))


def registered_as(found: Found, item: Operator | Callable) -> str:
    """Return the name that a thing has in the registry unless another is given."""
    if isinstance(item, Operator):
        return item.name
    return f"{found.package}::{item.name.rpartition('.')[2]}"


def _chosen(found: Found, name: str) -> Operator | Callable:
    everything: dict[str, Operator | Callable] = {item.name: item for item in found.operators}
    everything |= {item.name: item for item in found.callables}
    if name in everything:
        return everything[name]
    ends = [key for key in everything if key.endswith((f".{name}", f"::{name}"))]
    if len(ends) == 1:
        return everything[ends[0]]
    if ends:
        raise UnknownOp(f"{name!r} is the name of {', '.join(ends)}; give one of them in full")
    close = difflib.get_close_matches(name, [*everything, *(key.rpartition(".")[2] for key in everything)], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise UnknownOp(f"{found.package} has no operator, autograd.Function or launching function called {name!r}{hint}")


def _entry(item: Operator | Callable) -> str:
    target = f"torch.ops.{item.name.replace('::', '.')}" if isinstance(item, Operator) else item.name.rpartition(".")[2]
    return f"adopt({target}, reference=reference, samples=samples)"


def _signature(parameter: Parameter) -> str:
    return parameter.name if not parameter.default else f"{parameter.name}={_default(parameter)}"


def _default(parameter: Parameter) -> str:
    """Return a default as it can stand in another module: what is no literal is None there."""
    literal = re.fullmatch(r"None|True|False|-?[\d.]+(e-?\d+)?|'[^']*'|\"[^\"]*\"", parameter.default)
    return parameter.default if literal else "None"


def _sampled(parameter: Parameter) -> str:
    """Return a line that gives a parameter a value."""
    name, kind = parameter.name, parameter.type.removeprefix("Optional[").rstrip("]")
    choose = "  # choose"
    if "List[" in parameter.type or "list[" in parameter.type:
        if "Tensor" in parameter.type:
            return f'[case.tensor("rows", "cols", name="{name}[0]")],{choose}'
        return f"[1],{choose}"
    if kind in _PLAIN:
        return f"{name}={_PLAIN[kind]},{choose}"
    if _INTEGERS.search(name):
        return f'{name}=case.integers(0, case.dims["cols"], "rows", name="{name}"),{choose}: the legal range and dims'
    return f'{name}=case.tensor("rows", "cols", name="{name}"),'


def _table(name: str) -> str:
    return (
        f"{TABLE}\n"
        f'[op."{name}"]\n'
        f'kind = "normalization"  # choose: {" ".join(KINDS)}\n'
        'dtypes = ["float32", "float16", "bfloat16"]  # the element types that it promises\n'
        'dims = ["rows", "cols"]  # the names that samples(case) asks for\n'
    )
