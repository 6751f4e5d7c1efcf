"""What all shapes have in common: how they read, how they complain, how they print as JSON Schema."""

from __future__ import annotations

import datetime
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Self

#: What TOML 1.0 promises of an integer: 64 bits, signed.
INTEGER_MAX = 2**63 - 1

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = 60


class Problems:
    """Every error of one file, in the order in which they were met.

    Attributes:
        file: Name of the file, with which each sentence starts.
        sentences: What was found so far.
    """

    __slots__ = ("file", "sentences")

    def __init__(self, file: str) -> None:
        self.file = file
        self.sentences: list[str] = []

    def add(self, path: str, sentence: str) -> None:
        """Note one error: `path` is the dotted key, and the sentence goes on from it."""
        self.sentences.append(f"{self.file}: {path} {sentence}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(ABC):
    """What a value may be.

    Attributes:
        doc: A sentence for the reader of the JSON Schema.
        called: How an error calls what was expected, where the shape's own wording is too general.
    """

    doc: str = ""
    called: str = ""

    @property
    def noun(self) -> str:
        """What an error says was expected, to go after "it should be"."""
        return self.called or self._noun()

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the parsed value, or None where there is none; every error is noted in `problems`."""
        if not self.fits(value):
            problems.add(path, f"is {show(value)}; it should be {self.noun}{self._hint(value)}")
            return None
        return self._parse(value, path, problems)

    def about(self, doc: str) -> Self:
        """Return the same shape with another sentence for the JSON Schema."""
        return replace(self, doc=doc)

    def json_schema(self) -> dict[str, Any]:
        """Return the shape in JSON Schema, draft 2020-12."""
        return ({"description": self.doc} if self.doc else {}) | self._schema()

    @abstractmethod
    def fits(self, value: Any) -> bool:
        """Say whether the value is of this shape; a container looks only at its type."""

    @abstractmethod
    def _noun(self) -> str: ...

    @abstractmethod
    def _schema(self) -> dict[str, Any]: ...

    def _hint(self, value: Any) -> str:
        return ""

    def _parse(self, value: Any, path: str, problems: Problems) -> Any:
        return value


def join(path: str, key: str) -> str:
    """Return the dotted path of a key, quoted where TOML would need quotes."""
    word = key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"{path}.{word}" if path else word


def meant(word: Any, known: Iterable[str]) -> str:
    """Return `; did you mean x?` with the nearest known word, or nothing where none is near."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), names, n=1) if isinstance(word, str) else []
    return f"; did you mean {names[near[0]]}?" if near else ""


def show(value: Any) -> str:
    """Return a value as an error shows it: a scalar as TOML writes it, a container by its kind."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() if abs(value) > INTEGER_MAX:
            return "an integer beyond 64 bits"
        case str():
            return json.dumps(value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "...", ensure_ascii=False)
        case dict():
            return "a table" if value else "an empty table"
        case list():
            return "a list" if value else "an empty list"
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return repr(value)
