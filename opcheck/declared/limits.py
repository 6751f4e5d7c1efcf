"""Tables of limits: `[defaults.<check>]`, `[op."ns::name".<check>]` and, under each, one per dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from opcheck.core.kernel_coverage import COVERAGE, CoverageLimits
from opcheck.core.policy import DTYPES, ByWidth, Existing, Override, plain
from opcheck.core.schema import Boolean, Integer, ListOf, MapOf, Number, OneOf, Record, Shape, Shared, Text
from opcheck.declared.names import DTYPE, REASON, SOURCE

#: Absolute and relative tolerance by dtype of the five-stage correctness check that kernels are often accepted by.
FIVE_STAGE: dict[str, Existing] = {
    dtype: Existing(atol=tolerance, rtol=tolerance, reason="five-stage")
    for dtype, tolerance in (("float32", 1e-4), ("float16", 1e-2), ("bfloat16", 2e-2))
}

_NOTES: dict[str, Shape] = {
    "reason": REASON.about("Why these limits; needed where one is looser than the one above it."),
    "source": SOURCE,
}
_TOLERANCE = Number(least=0)
_EXISTING = OneOf(
    doc="Tolerances that the op had before, by dtype: |target - golden| <= atol + rtol |golden|. They are reported.",
    shapes=(
        Text(choices=("five-stage",)),
        MapOf(
            key=DTYPE,
            item=Record(required={"atol": _TOLERANCE, "rtol": _TOLERANCE}, optional={"reason": REASON}, build=Existing),
        ),
    ),
    called='"five-stage", or a table of dtype to { atol, rtol, reason }',
)


def table_of(check: str, limits: type, *, of_op: bool) -> Record:
    """Return the shape of a check's table; only the one of an op may hold tolerances that it had before."""
    own = _limit_shapes(check, limits)
    unknown = f"is not a limit of {check}; it has {', '.join(own) or 'none'}"
    narrow = Record(doc=f"Limits of {check} for this element type.", optional={**own, **_NOTES}, unknown=unknown)
    by_dtype = {dtype: Shared(name=f"{check}-of-dtype", shape=narrow) for dtype in DTYPES}
    existing = {"existing": _EXISTING} if of_op and check == "numerics" else {}
    return Record(
        doc=f"Limits of the check {check}.",
        optional={**own, **_NOTES, **existing, **by_dtype},
        unknown=unknown,
        called="a table of limits",
    )


def coverage_table() -> Record:
    """Return the shape of the table of what must be reached of kernels; element types share them, so there is one."""
    own = _limit_shapes(COVERAGE, CoverageLimits)
    return Record(
        doc="How much of the kernels the cases must reach; asked only under `audit --coverage`.",
        optional={**own, **_NOTES},
        unknown=f"is not a limit of {COVERAGE}; it has {', '.join(own)}",
        called="a table of limits",
    )


def definitions(limits: Mapping[str, type]) -> dict[str, Any]:
    """Return the `$defs` that the tables of limits refer to."""
    shared = {check: table_of(check, cls, of_op=False).optional[DTYPES[0]] for check, cls in limits.items()}
    return {shape.name: shape.shape.json_schema() for shape in shared.values() if isinstance(shape, Shared)}


def layers(check: str, limits: type, table: Mapping[str, Any]) -> tuple[Override, ...]:
    """Return the limits that a table sets: those for all dtypes, then those of each."""
    found = []
    for dtype, layer in (("", table), *((dtype, table[dtype]) for dtype in DTYPES if dtype in table)):
        values = {
            field.name: _both(layer[field.name], field.default) for field in fields(limits) if field.name in layer
        }
        if values:
            notes = {"reason": layer.get("reason", ""), "source": layer.get("source", "")}
            found.append(Override(check=check, dtype=dtype, values=values, **notes))
    return tuple(found)


def existing_of(table: Mapping[str, Any]) -> Mapping[str, Existing]:
    """Return the tolerances that an op had before, by dtype."""
    existing = table.get("existing", {})
    return dict(FIVE_STAGE) if existing == "five-stage" else existing


def _limit_shapes(check: str, limits: type) -> dict[str, Shape]:
    hints = get_type_hints(limits)
    shapes = {}
    for field in fields(limits):
        if field.default is MISSING or field.name in (*_NOTES, *DTYPES, "existing"):
            raise TypeError(f"limit {check}.{field.name} needs a default and a name that no other key has")
        zero = bool(field.metadata.get("zero")) or field.default in (0, ByWidth(narrow=0, wide=0))
        shape = _limit_shape(
            f"{check}.{field.name}", hints[field.name], zero=zero, most=field.metadata.get("most"),
            choices=field.metadata.get("choices", ()),
        )  # fmt: skip
        shapes[field.name] = shape.about(f"{field.metadata.get('doc', '')} Default {_shown(field.default)}.".lstrip())
    return shapes


def _limit_shape(name: str, kind: Any, *, zero: bool, most: float | None, choices: tuple[str, ...]) -> Shape:
    if kind is int:
        return Integer(least=0 if zero else 1)
    if kind is bool:
        return Boolean()
    if kind == tuple[str, ...]:
        return ListOf(item=Text(choices=choices), unique=True)
    number = Number(least=0, most=most) if zero else Number(above=0, most=most)
    if kind is float:
        return number
    if kind is not ByWidth:
        raise TypeError(f"limit {name} is of type {kind}; it should be int, float, bool, tuple[str, ...] or ByWidth")
    pair = Record(required={"narrow": number, "wide": number}, build=ByWidth)
    return OneOf(shapes=(number, pair), called=f"{number.noun}, or {{ narrow = ..., wide = ... }} with one for each")


def _both(value: Any, default: Any) -> Any:
    """Return one number given for a limit that differs by width as a pair of it."""
    return ByWidth(narrow=value, wide=value) if isinstance(default, ByWidth) and isinstance(value, float) else value


def _shown(default: Any) -> str:
    if isinstance(default, ByWidth):
        return f"{default.narrow:g} narrow, {default.wide:g} wide"
    return plain(default)
