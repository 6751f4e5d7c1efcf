"""The JSON Schema of a report, read off the dataclasses of which the report is made."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from opcheck.core.gate import ExitStatus
from opcheck.core.policy import LEVELS
from opcheck.core.report import SCHEMA, STAGES, AuditReport, StageState

DRAFT = "https://json-schema.org/draft/2020-12/schema"

# What a field's type leaves open and the report does not.
_NARROWED: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("AuditReport", "schema"): {"const": SCHEMA},
    ("AuditReport", "exit_status"): {"enum": [int(status) for status in ExitStatus]},
    ("AuditReport", "level"): {"enum": list(LEVELS)},
    ("OpReport", "stages"): {
        "type": "object",
        "propertyNames": {"enum": list(STAGES)},
        "additionalProperties": {"enum": list(get_args(StageState))},
    },
}

_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of what `opcheck.render.formats.json.render` writes.

    Every field is required, but for those that may be None, and nothing else is allowed; a float that is not finite is
    a string, as `to_json` has it.
    """
    number = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
    definitions: dict[str, Any] = {"number": number}
    root = _record(AuditReport, definitions)
    return {"$schema": DRAFT, "title": "opcheck report", **root, "$defs": dict(sorted(definitions.items()))}


def _record(record: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(record)
    names = sorted(item.name for item in dataclasses.fields(record))
    properties = {
        name: dict(_NARROWED.get((record.__name__, name)) or _schema(_given(hints[name]), definitions))
        for name in names
    }
    return {
        "description": (inspect.getdoc(record) or "").partition("\n")[0],
        "type": "object",
        "properties": properties,
        "required": [name for name in names if _given(hints[name]) is hints[name]],
        "additionalProperties": False,
    }


def _given(hint: Any) -> Any:
    """Return the type of a field where it is not None."""
    parts = get_args(hint) if get_origin(hint) is UnionType else ()
    return next(part for part in parts if part is not NoneType) if NoneType in parts else hint


def _schema(hint: Any, definitions: dict[str, Any]) -> Mapping[str, Any]:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is float:
        return {"$ref": "#/$defs/number"}
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) is Mapping:
        return {"type": "object", "additionalProperties": dict(_schema(get_args(hint)[1], definitions))}
    if get_origin(hint) is tuple and get_args(hint)[1:] == (...,):
        return {"type": "array", "items": dict(_schema(get_args(hint)[0], definitions))}
    if isinstance(hint, type) and (issubclass(hint, Enum) or dataclasses.is_dataclass(hint)):
        return _shared(hint, definitions)
    if get_origin(hint) is UnionType and all(dataclasses.is_dataclass(part) for part in get_args(hint)):
        return {"anyOf": [dict(_schema(part, definitions)) for part in get_args(hint)]}
    raise TypeError(
        f"{hint} has no place in a report; it should be str, bool, int, float, a Literal, an Enum, a dataclass, "
        f"a Mapping from str to one of them, or a tuple of any number of one of them"
    )


def _shared(hint: type, definitions: dict[str, Any]) -> Mapping[str, Any]:
    if hint.__name__ not in definitions:
        definitions[hint.__name__] = {}  # holds the place while the parts are described
        definitions[hint.__name__] = (
            {"enum": [item.value for item in hint]} if issubclass(hint, Enum) else _record(hint, definitions)
        )
    return {"$ref": f"#/$defs/{hint.__name__}"}
