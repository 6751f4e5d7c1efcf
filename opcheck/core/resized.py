"""Other sizes of a case, near its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opcheck.core.case import Case, Dims
from opcheck.core.policy import Contract
from opcheck.core.shapes import legal, named, reduced


def resized(contract: Contract, case: Case) -> Case | None:
    """Return the case in the next larger batch, or with another dimension changed; None where all sizes are fixed."""
    other = next(variations(contract, case.dims, steps=2), None)
    return None if other is None else replace(case, dims=other)


def variations(contract: Contract, dims: Dims, *, steps: int) -> Iterator[Dims]:
    """Yield shapes in which one dimension is 1 to `steps` larger, or as near to that as is legal; each once.

    Dimensions that are not reduced come first.
    """
    along = reduced(contract)
    names = [name for name in sorted(named(contract), key=lambda name: name in along) if name in dims]
    seen = {tuple(dims.items())}
    for step in range(1, steps + 1):
        for name in names:
            multiple = contract.multiple.get(name, 1)
            other = Dims({**dims, name: legal(contract, name, dims[name] + step * multiple)})
            if tuple(other.items()) not in seen:
                seen.add(tuple(other.items()))
                yield other
