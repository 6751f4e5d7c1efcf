"""The whole file: its tables, the `Policy` that they make, and their JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opcheck.core.kernel_coverage import COVERAGE, CoverageLimits
from opcheck.core.policy import DTYPES, Contract, GatePolicy, Override, Policy
from opcheck.core.schema import Integer, ListOf, MapOf, Problems, Record, join
from opcheck.declared import contract, loosened, shipping
from opcheck.declared.file import document
from opcheck.declared.limits import coverage_table, definitions, existing_of, layers, table_of
from opcheck.declared.names import MODULE, OP
from opcheck.errors import PolicyError

VERSION = 1

_Limits = Mapping[str, type]


def load(path: Path, limits: _Limits) -> Policy:
    """Read `registry.toml`.

    Args:
        path: The file.
        limits: Each check's frozen dataclass of limits, by the check's name.

    Raises:
        PolicyError: The file cannot be read, is not TOML or says what it may not; all errors at once.
    """
    return policy_of(document(path), limits, path)


def policy_of(table: Mapping[str, Any], limits: _Limits, path: Path) -> Policy:
    """Return the policy of a document, as `tomllib` gives it; `path` is named in the errors and the result.

    Raises:
        PolicyError: The document says what it may not; all errors at once.
    """
    problems = Problems(path.name)
    version = table.get("schema")
    if isinstance(version, int) and version != VERSION:
        table = {"schema": version}  # the rest may mean something else in another version
        _HEAD.read(table, "", problems)
        raise PolicyError(tuple(problems.sentences))
    read = _shape(limits).read(table, "", problems)
    defaults = _defaults(read.get("defaults", {}), limits, problems)
    ops = {name: _contract(name, own, limits, defaults, problems) for name, own in read.get("op", {}).items()}
    if problems.sentences:
        raise PolicyError(tuple(problems.sentences))
    return Policy(
        path=str(path),
        modules=read["registry"]["modules"],
        defaults=defaults,
        gate=read.get("gate", GatePolicy()),
        ops={name: own for name, own in ops.items() if own is not None},
        waivers=read.get("waiver", ()),
        changes=read.get("change", ()),
    )


def json_schema(limits: _Limits) -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of `registry.toml`.

    What several keys must say together (a reason for a looser limit, dimensions that exist) is beyond it; `load` checks
    that. Dates appear as strings, as converters from TOML to JSON write them.
    """
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "registry.toml of opcheck"}
    return head | _shape(limits).json_schema() | {"$defs": definitions(limits)}


def write_schema(limits: _Limits, path: Path) -> None:
    """Write the JSON Schema to a file, in UTF-8."""
    path.write_text(json.dumps(json_schema(limits), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


_HEAD = Record(
    required={
        "schema": Integer(
            doc="Version of this format.",
            least=VERSION,
            most=VERSION,
            called=f"{VERSION}, the only version that this opcheck reads",
        )
    }
)
_REGISTRY = Record(
    doc="Where the ops are.",
    required={
        "modules": ListOf(
            doc="Modules to import so that their decorators run; packages are walked.",
            item=MODULE,
            least=1,
            unique=True,
        )
    },
)


def _shape(limits: _Limits) -> Record:
    """Return the shape of the whole file for the checks that there are."""
    checks = tuple(limits)
    if clash := sorted({*checks} & {*contract.REQUIRED, *contract.OPTIONAL, COVERAGE}):
        raise TypeError(f"the checks {', '.join(clash)} are named as keys of a contract are")
    defaults = {check: table_of(check, cls, of_op=False) for check, cls in limits.items()}
    own = {check: table_of(check, cls, of_op=True) for check, cls in limits.items()}
    keys = ", ".join((*contract.REQUIRED, *contract.OPTIONAL))
    op = Record(
        doc="The contract of one op, and its limits under the names of the checks.",
        required=contract.REQUIRED,
        optional={**contract.OPTIONAL, **own, COVERAGE: coverage_table()},
        unknown=f"is neither a contract key ({keys}) nor a check ({', '.join(checks)})",
    )
    known = f"is not a check; the checks are {', '.join(checks)}"
    return Record(
        required={**_HEAD.required, "registry": _REGISTRY},
        optional={
            "defaults": Record(
                doc="Limits of every op, by check.",
                optional={**defaults, COVERAGE: coverage_table()},
                unknown=known,
            ),
            "gate": shipping.GATE,
            "op": MapOf(doc="Contracts by the op's qualified name.", key=OP, item=op),
            "waiver": ListOf(doc="Known failures that may ship until a date.", item=shipping.waiver(checks)),
            "change": ListOf(doc="Promises taken back knowingly.", item=shipping.change(checks)),
        },
    )


def _defaults(table: Mapping[str, Any], limits: _Limits, problems: Problems) -> tuple[Override, ...]:
    """Return the file's own limits; one of a dtype that is looser than that of all needs a reason."""
    limits = {**limits, COVERAGE: CoverageLimits}
    found = {check: layers(check, limits[check], own) for check, own in table.items()}
    for check, overrides in found.items():
        stack = loosened.layers_of(join("defaults", check), overrides)
        for_all = [layer for layer in stack if not layer.override.dtype]
        loosened.check(limits[check], for_all, stack[len(for_all) :], DTYPES, problems)
    return tuple(override for overrides in found.values() for override in overrides)


def _contract(
    name: str, table: Mapping[str, Any], limits: _Limits, defaults: tuple[Override, ...], problems: Problems
) -> Contract | None:
    """Return the contract of one op; a limit of it that is looser than the one above needs a reason."""
    path = join("op", name)
    limits = {**limits, COVERAGE: CoverageLimits}
    found = {check: layers(check, cls, table[check]) for check, cls in limits.items() if check in table}
    for check, own in found.items():
        above = loosened.layers_of(join("defaults", check), (layer for layer in defaults if layer.check == check))
        dtypes = loosened.needed(table.get("dtypes", ()), table.get("mixed", ()), own)
        loosened.check(limits[check], above, loosened.layers_of(join(path, check), own), dtypes, problems)
    overrides = tuple(override for own in found.values() for override in own)
    return contract.build(name, table, overrides, existing_of(table.get("numerics", {})), path, problems)
