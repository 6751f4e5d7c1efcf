"""Shapes of values without parts: strings, numbers, booleans, dates."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from opcheck.core.schema.base import INTEGER_MAX, Problems, Shape, meant, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Shape):
    """A string: one of `choices`, or one that matches all of `pattern`, or any; not blank unless `blank`."""

    choices: tuple[str, ...] = ()
    pattern: str = ""
    blank: bool = False

    def fits(self, value: Any) -> bool:
        if not isinstance(value, str):
            return False
        if self.choices:
            return value in self.choices
        return (self.blank or bool(value.strip())) and (not self.pattern or bool(re.fullmatch(self.pattern, value)))

    def _noun(self) -> str:
        match self.choices:
            case ():
                return "a string" if self.blank else "a string that is not blank"
            case (only,):
                return show(only)
            case _:
                return f"one of {', '.join(self.choices)}"

    def _hint(self, value: Any) -> str:
        return meant(value, self.choices)

    def _schema(self) -> dict[str, Any]:
        if self.choices:
            return {"enum": list(self.choices)}
        pattern = f"^(?:{self.pattern})$" if self.pattern else "" if self.blank else r"\S"
        return {"type": "string"} | ({"pattern": pattern} if pattern else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Glob(Shape):
    """A name out of `over`, or a shell pattern that matches at least one of them."""

    over: tuple[str, ...]

    def fits(self, value: Any) -> bool:
        return isinstance(value, str) and any(fnmatchcase(name, value) for name in self.over)

    def _noun(self) -> str:
        return f"one of {', '.join(self.over)} or a glob that matches one"

    def _hint(self, value: Any) -> str:
        return meant(value, self.over)

    def _schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"\S"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Shape):
    """A finite number, parsed as float: of `least` or more, or above `above`, and at most `most`."""

    least: float | None = None
    above: float | None = None
    most: float | None = None

    def fits(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if isinstance(value, int) and abs(value) > INTEGER_MAX:
            return False
        if not math.isfinite(value) or (self.least is not None and value < self.least):
            return False
        return (self.above is None or value > self.above) and (self.most is None or value <= self.most)

    def _noun(self) -> str:
        most = "" if self.most is None else f", at most {self.most:g}"
        if self.above is not None:
            return f"a number above {self.above:g}{most}"
        return f"a finite number{most}" if self.least is None else f"a number of {self.least:g} or more{most}"

    def _parse(self, value: Any, path: str, problems: Problems) -> float:
        return float(value)

    def _schema(self) -> dict[str, Any]:
        bounds = {"minimum": self.least, "exclusiveMinimum": self.above, "maximum": self.most}
        return {"type": "number"} | {key: bound for key, bound in bounds.items() if bound is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Shape):
    """An integer from `least` to `most`."""

    least: int = 0
    most: int = INTEGER_MAX

    def fits(self, value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most

    def _noun(self) -> str:
        return f"an integer of {self.least} or more" + ("" if self.most == INTEGER_MAX else f", at most {self.most}")

    def _schema(self) -> dict[str, Any]:
        most = {} if self.most == INTEGER_MAX else {"maximum": self.most}
        return {"type": "integer", "minimum": self.least} | most


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean(Shape):
    """`true` or `false`."""

    def fits(self, value: Any) -> bool:
        return isinstance(value, bool)

    def _noun(self) -> str:
        return "true or false"

    def _schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Date(Shape):
    """A TOML date without a time; JSON has none, so the JSON Schema speaks of the string that a converter makes."""

    def fits(self, value: Any) -> bool:
        return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)

    def _noun(self) -> str:
        return "a date without quotes, such as 2027-03-31"

    def _hint(self, value: Any) -> str:
        try:
            day = datetime.date.fromisoformat(value)
        except (TypeError, ValueError):
            return ""
        return f"; drop the quotes: {day.isoformat()}"

    def _schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "date"}
