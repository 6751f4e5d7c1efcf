"""Shapes of values with parts: lists, maps, records and alternatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opcheck.core.schema.base import Problems, Shape, join, meant, show
from opcheck.core.schema.leaves import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(Shape):
    """A list, parsed as a tuple; None where any item is wrong, so that positions stay true."""

    item: Shape
    least: int = 0
    unique: bool = False

    def fits(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) >= self.least

    def _noun(self) -> str:
        return (
            f"a list of {self.least} or more, each {self.item.noun}" if self.least else f"a list, each {self.item.noun}"
        )

    def _parse(self, value: Any, path: str, problems: Problems) -> tuple[Any, ...] | None:
        items = tuple(self.item.read(item, f"{path}[{index}]", problems) for index, item in enumerate(value))
        if any(item is None for item in items):
            return None
        # Compared by repr because 1, 1.0 and true are equal in Python and three values in TOML.
        count = Counter(map(repr, items))
        twice = dict.fromkeys(show(raw) for raw, item in zip(value, items, strict=True) if count[repr(item)] > 1)
        if self.unique and twice:
            problems.add(path, f"has {', '.join(twice)} more than once")
            return None
        return items

    def _schema(self) -> dict[str, Any]:
        counts = ({"minItems": self.least} if self.least else {}) | ({"uniqueItems": True} if self.unique else {})
        return {"type": "array", "items": self.item.json_schema()} | counts


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf(Shape):
    """A table whose keys the author chooses, within the shape `key`; parsed as a dict of what is right."""

    item: Shape
    key: Text
    least: int = 0

    def fits(self, value: Any) -> bool:
        return isinstance(value, dict) and len(value) >= self.least

    def _noun(self) -> str:
        return f"a table of {self.key.noun} to {self.item.noun}"

    def _parse(self, value: Any, path: str, problems: Problems) -> dict[str, Any]:
        parsed = {}
        for key, item in value.items():
            where = join(path, key)
            if not self.key.fits(key):
                problems.add(where, f"is not {self.key.noun}{meant(key, self.key.choices)}")
            elif (read := self.item.read(item, where, problems)) is not None:
                parsed[key] = read
        return parsed

    def _schema(self) -> dict[str, Any]:
        keys = {key: name for key, name in self.key.json_schema().items() if key != "description"}
        least = {"minProperties": self.least} if self.least else {}
        return {"type": "object", "propertyNames": keys, "additionalProperties": self.item.json_schema()} | least


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Shape):
    """A table with known keys, parsed as a dict of what is right.

    Attributes:
        unknown: What an error says of a key that is not known; by default that it is none, and which there are.
        build: Makes the parsed value from the dict; called only where every required key is there and right.
    """

    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)
    unknown: str = ""
    build: Callable[..., Any] | None = None

    def fits(self, value: Any) -> bool:
        return isinstance(value, dict)

    def _noun(self) -> str:
        return f"a table with {', '.join(self.required)}" if self.required else "a table"

    def _parse(self, value: Any, path: str, problems: Problems) -> Any:
        known = {**self.required, **self.optional}
        unknown = self.unknown or f"is not a key of {path or 'the file'}; it has {', '.join(known)}"
        for key in value:
            if key not in known:
                problems.add(join(path, key), unknown + meant(key, known))
        for key in self.required:
            if key not in value:
                problems.add(join(path, key), f"is missing; it should be {known[key].noun}")
        read = {key: shape.read(value[key], join(path, key), problems) for key, shape in known.items() if key in value}
        parsed = {key: item for key, item in read.items() if item is not None}
        if self.build is None:
            return parsed
        return self.build(**parsed) if parsed.keys() >= self.required.keys() else None

    def _schema(self) -> dict[str, Any]:
        properties = {key: shape.json_schema() for key, shape in {**self.required, **self.optional}.items()}
        required = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": properties, "additionalProperties": False} | required


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf(Shape):
    """The first of several shapes that fits."""

    shapes: tuple[Shape, ...]

    def fits(self, value: Any) -> bool:
        return any(shape.fits(value) for shape in self.shapes)

    def _noun(self) -> str:
        return " or ".join(shape.noun for shape in self.shapes)

    def _parse(self, value: Any, path: str, problems: Problems) -> Any:
        return next(shape for shape in self.shapes if shape.fits(value)).read(value, path, problems)

    def _schema(self) -> dict[str, Any]:
        return {"anyOf": [shape.json_schema() for shape in self.shapes]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared(Shape):
    """A shape that stands in several places, and once, under `name`, in the `$defs` of the JSON Schema."""

    name: str
    shape: Shape

    def fits(self, value: Any) -> bool:
        return self.shape.fits(value)

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        return self.shape.read(value, path, problems)

    def _noun(self) -> str:
        return self.shape.noun

    def _schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}
