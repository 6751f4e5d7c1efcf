"""Limits that are looser than those above them, which need a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from opcheck.core.policy import ByWidth, Override, looser
from opcheck.core.schema import Problems, join


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Limits and the path of the table that they stand in."""

    path: str
    override: Override


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A limit as it holds so far, and the table that set it."""

    value: Any
    path: str = ""
    dtype: str = ""


def layers_of(path: str, overrides: Iterable[Override]) -> list[Layer]:
    """Return the tables of one check, which is at `path`."""
    return [Layer(path=join(path, layer.dtype) if layer.dtype else path, override=layer) for layer in overrides]


def check(
    limits: type, above: Sequence[Layer], own: Sequence[Layer], dtypes: Iterable[str], problems: Problems
) -> None:
    """Note, once, every limit of `own` that is looser than what holds above it for a dtype, and has no reason."""
    noted: set[tuple[str, str]] = set()
    for dtype in dtypes:
        held = {field.name: _Held(value=field.default) for field in fields(limits)}
        _hold(held, above, dtype)
        for layer in own:
            explained = bool(layer.override.reason)
            for name, sentence in _loosened(limits, held, layer, dtype):
                if not explained and (layer.path, name) not in noted:
                    noted.add((layer.path, name))
                    problems.add(join(layer.path, name), sentence)
            _hold(held, [layer], dtype)


def _hold(held: dict[str, _Held], layers: Sequence[Layer], dtype: str) -> None:
    """Put the limits of the layers that apply to a dtype in force."""
    for layer in layers:
        if layer.override.dtype in ("", dtype):
            for name, value in layer.override.values.items():
                held[name] = _Held(value=value, path=layer.path, dtype=layer.override.dtype)


def _loosened(limits: type, held: Mapping[str, _Held], layer: Layer, dtype: str) -> Iterator[tuple[str, str]]:
    """Yield each limit of a layer that is looser for a dtype than what holds, and a sentence that says so."""
    if layer.override.dtype not in ("", dtype):
        return
    directions = {field.name: field.metadata.get("loose", "higher") for field in fields(limits)}
    for name, value in layer.override.values.items():
        if sentence := _looser(value, held[name], dtype, directions[name], of_dtype=bool(layer.override.dtype)):
            yield name, sentence


def _looser(value: Any, above: _Held, dtype: str, direction: str, *, of_dtype: bool) -> str:
    """Say how a limit is looser than the one above it; empty where it is not."""
    new, old = _number(value, dtype), _number(above.value, dtype)
    if not looser(new, old, direction):
        return ""
    varies = isinstance(value, ByWidth) or bool(above.dtype)
    which = f" for {dtype}" if varies and not of_dtype else ""
    source = f"of {above.path}" if above.path else "that opcheck starts from"
    told, before = (str(item).lower() if isinstance(item, bool) else repr(item) for item in (new, old))
    return f"is {told}{which}, looser than the {before} {source}; give the reason beside it"


def _number(value: Any, dtype: str) -> float:
    number: float = value.of(dtype) if isinstance(value, ByWidth) else value
    return number


def needed(dtypes: Iterable[str], mixed: Iterable[Mapping[str, str]], overrides: Iterable[Override]) -> tuple[str, ...]:
    """Return the dtypes whose limits an op uses: those it promises, mixes or has a table for."""
    mixtures = (dtype for mixture in mixed for dtype in mixture.values())
    return tuple(dict.fromkeys((*dtypes, *mixtures, *(layer.dtype for layer in overrides if layer.dtype))))
