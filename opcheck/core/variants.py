"""Argument values that differ from the sample's, as they stand in a case's id."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from opcheck.errors import BadCase

RESERVED = "%"  # before the names of what is not an argument
CONFIG = "%config"  # the configuration of the autotuned kernels, by its position
PROGRAMS = "%programs"  # how many programs of each interpreted launch run, where it is not all of them

_LEAST = {CONFIG: 0, PROGRAMS: 1}


def variant_text(arguments: Mapping[str, Any]) -> str:
    """Write argument values as a case's variant: `eps=1e-05,approximate="tanh"`.

    A semicolon parts the fields of a case's id and an apostrophe ends it in a shell; inside the values, both are
    written as JSON escapes.
    """
    text = ",".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    return text.replace(";", r"\u003b").replace("'", r"\u0027")


def changed_variant(text: str, values: Mapping[str, Any] | None = None, *, without: Collection[str] = ()) -> str:
    """Return a case's variant with some argument values set and others left out; what is reserved stays.

    Raises:
        BadCase: The text is not of the form `name=json,name=json`.
    """
    items = {**_items(text), **(values or {})}
    return variant_text({name: value for name, value in items.items() if name not in without})


def variant_values(text: str) -> dict[str, Any]:
    """Read a case's variant back, without what is reserved; the inverse of `variant_text`.

    Raises:
        BadCase: The text is not of the form `name=json,name=json`.
    """
    return {name: value for name, value in _items(text).items() if not name.startswith(RESERVED)}


def config_of(text: str) -> int | None:
    """Return which configuration of the autotuned kernels a case's variant asks for, None where it does not.

    Raises:
        BadCase: It is not an integer of 0 or more, or another reserved name is used.
    """
    return _reserved(text).get(CONFIG)


def programs_of(text: str) -> int | None:
    """Return how many programs of each launch a case's variant asks for, None where all are to run.

    Raises:
        BadCase: As `config_of`.
    """
    return _reserved(text).get(PROGRAMS)


def _reserved(text: str) -> dict[str, int]:
    reserved = {name: value for name, value in _items(text).items() if name.startswith(RESERVED)}
    for name, value in reserved.items():
        if name not in _LEAST:
            raise BadCase(f"variant {text!r}: {name} is not a reserved name; there are {', '.join(_LEAST)}")
        least = _LEAST[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadCase(f"variant {text!r}: {name} is {value!r}; it should be an integer of {least} or more")
    return reserved


def _items(text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    rest = text
    while rest:
        name, _, rest = rest.partition("=")
        try:
            values[name], end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            raise BadCase(f"variant {text!r} should read name=value, the value in JSON: near {rest!r}") from None
        if rest[end : end + 1] not in ("", ","):
            raise BadCase(f"variant {text!r} should have a comma between its values, not {rest[end:]!r}")
        rest = rest[end + 1 :]
    return values
