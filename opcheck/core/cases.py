"""From a contract to the list of cases: pure, sorted, printable."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opcheck.core.case import LEADING, Case, Dims
from opcheck.core.families import families_for
from opcheck.core.policy import Contract, Level
from opcheck.errors import BadCase

SMALL = 5  # rows and the like: enough for several programs, cheap on the interpreter
ODD = 129  # a reduced dimension: prime to every tile, one above a power of two
MANY_ROWS = 64
INTERPRETED_ELEMENTS = 1 << 16  # a shape with more is not run on the interpreter


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A case, and whether it is the one of its dtype on which the costly checks run."""

    case: Case
    representative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an audit of one op will run, and in words what it will not."""

    cases: tuple[Planned, ...]
    not_covered: tuple[str, ...] = ()


def plan_cases(
    contract: Contract, *, level: Level, backend: str, seed: int = 0, refused: Mapping[str, str] | None = None
) -> Plan:
    """Return the cases of an op at a level; the same arguments always give the same plan.

    Args:
        refused: Element types for which this backend cannot give a verdict, with the reason.
    """
    refused = refused or {}
    missing: list[str] = []
    shapes = tuple(_runnable(_shapes(contract, level), contract, backend, missing))
    odd = _odd(contract)
    dtypes = [dtype for dtype in contract.dtypes if dtype not in refused]
    missing += [f"{dtype}: {refused[dtype]}" for dtype in contract.dtypes if dtype in refused]
    mixed = [",".join(f"{key}={value}" for key, value in table.items()) for table in contract.mixed]
    missing += [f"mixed {text}: {why}" for text in mixed for dtype, why in refused.items() if f"={dtype}" in text]
    mixed = [text for text in mixed if not any(f"={dtype}" in text for dtype in refused)]
    families = families_for(contract.kind, finite_only=bool(contract.nonfinite_undefined))
    if contract.nonfinite_undefined:
        missing.append(f"NaN and Inf inputs: outside the contract ({contract.nonfinite_undefined})")

    found: dict[Case, bool] = {}

    def add(dtype: str, dims: Dims, *, values: str = "normal", variant: str = "", chosen: bool = False) -> None:
        case = Case(
            op=contract.name, dtype=dtype, dims=dims, values=values, variant=variant, seed=seed, backend=backend
        )
        found[case] = found.get(case, False) or chosen

    for dtype in dtypes:
        add(dtype, odd, chosen=True)
        for dims in shapes:
            add(dtype, dims)
        for item in families:
            add(dtype, odd, values=item.name)
        for arguments in contract.variants:
            add(dtype, odd, variant=variant_text(arguments))
    for dtype in mixed:
        add(dtype, odd)
        if level != "quick":
            add(dtype, odd, values="large_mean")
    return Plan(
        cases=tuple(Planned(case=case, representative=chosen) for case, chosen in found.items()),
        not_covered=tuple(missing),
    )


def variant_text(arguments: Mapping[str, Any]) -> str:
    """Write argument values as a case's variant: `eps=1e-05,approximate="tanh"`.

    A semicolon parts the fields of a case's id and an apostrophe ends it in a shell; inside the values, both are
    written as JSON escapes.
    """
    text = ",".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    return text.replace(";", r"\u003b").replace("'", r"\u0027")


def variant_values(text: str) -> dict[str, Any]:
    """Read a case's variant back; the inverse of `variant_text`.

    Raises:
        BadCase: The text is not of the form `name=json,name=json`.
    """
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


def _named(contract: Contract) -> tuple[str, ...]:
    return tuple(name for name in contract.dims if name != LEADING)


def _legal(contract: Contract, name: str, size: int) -> int:
    """Return the legal size nearest to the one wished for, rounding up to a multiple."""
    if name in contract.sizes:
        return min(contract.sizes[name], key=lambda legal: (abs(legal - size), legal))
    low = contract.smallest.get(name, 1)
    size = max(low, min(size, contract.largest.get(name, size)))
    step = contract.multiple.get(name, 1)
    rounded = math.ceil(size / step) * step
    return rounded if rounded <= contract.largest.get(name, rounded) else (size // step) * step


def _reduced(contract: Contract) -> frozenset[str]:
    return frozenset(contract.reduces or _named(contract)[-1:])


def _odd(contract: Contract) -> Dims:
    reduced = _reduced(contract)
    return Dims({n: _legal(contract, n, ODD if n in reduced else SMALL) for n in _named(contract)})


def _shapes(contract: Contract, level: Level) -> Iterator[Dims]:
    """Yield the shapes of a level: smallest, tile edges, many rows, leading dimensions, production."""
    names = _named(contract)
    reduced = _reduced(contract)
    base = Dims({n: _legal(contract, n, 37 if n in reduced else 3) for n in names})
    yield Dims({n: _legal(contract, n, 1) for n in names})
    for name in names:
        for tile in contract.tiles.get(name, ()):
            edges = (tile + 1,) if level == "quick" else (tile - 1, tile, tile + 1)
            for size in edges:
                legal = _legal(contract, name, size)
                yield base.with_size(name, legal)
    if level == "quick":
        return
    yield base
    rows = next((n for n in names if n not in reduced), None)
    if rows is not None:
        yield _odd(contract).with_size(rows, _legal(contract, rows, MANY_ROWS))
    if LEADING in contract.dims:
        yield Dims({f"{LEADING}0": 2, f"{LEADING}1": 1, **base})
    for shape in contract.production:
        yield Dims({**base, **shape})


def _runnable(shapes: Iterable[Dims], contract: Contract, backend: str, missing: list[str]) -> Iterator[Dims]:
    for dims in dict.fromkeys(shapes):
        if backend == "cpu" and math.prod(dims.values()) > INTERPRETED_ELEMENTS:
            text = ", ".join(f"{name}={size}" for name, size in dims.items())
            missing.append(f"shape {text}: too large for the interpreter; audit it on a GPU")
        else:
            yield dims
