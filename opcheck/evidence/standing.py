"""Does evidence still stand? Of each line the first reason why not, as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from opcheck.core.evidence import Line, asked_of, intact
from opcheck.evidence.here import Here


def fallen(line: Line, here: Here, document: Mapping[str, Any]) -> str:
    """Say why a line is not evidence of what is here now, empty where it is.

    Args:
        document: `registry.toml` as `tomllib` reads it.
    """
    return next(chain(_torn(line), sources(line, here, document), machine(line, here)), "")


def _torn(line: Line) -> Iterator[str]:
    if not intact(line):
        yield "its key is not that of its manifest: the line was edited"


def sources(line: Line, here: Here, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield each reason that lies in the project: its files, its folders, what registry.toml asks."""
    manifest = line.manifest
    if asked_of(line, document) != manifest.asked:
        yield "registry.toml has changed for it"
    for path, known in manifest.files.items():
        if (now := here.digest(path, manifest.stats.get(path), known)) != known:
            yield f"{path} {'has changed' if now else 'is gone'}"
    for path, known in manifest.folders.items():
        if here.folder(path) != known:
            yield f"the folder {path} holds other modules"


def machine(line: Line, here: Here) -> Iterator[str]:
    """Yield each reason that lies in the machine: its versions and the variables of the environment."""
    manifest = line.manifest
    for name, known in manifest.distributions.items():
        if (now := here.version(name)) != known:
            yield "opcheck itself has changed" if name == "opcheck" else f"{name} is {now}, and was {known}"
    for name in sorted({*manifest.variables, *here.variables}):
        is_now, was = here.variables.get(name), manifest.variables.get(name)
        if is_now != was:
            yield f"{name} is {_said(is_now)}, and was {_said(was)}"


def _said(value: str | None) -> str:
    return "not set" if value is None else repr(value)
