"""Which failures are depicted by a run of their own, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opcheck.core.finding import Finding
from opcheck.core.pictures import Picture
from opcheck.core.verdict import Verdict

#: Checks about the values of one tensor that do not look closer themselves, as numerics does.
DEPICTED = ("structure", "slices", "ulp", "bias")
MOST_ELEMENTS = 1 << 26  # of a tensor; a picture takes several times its size in float64


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One tensor to depict, in the terms of the check that failed.

    Attributes:
        axis, quotient: For `slices`: the axis along which a slice runs, and the error over its scale that is allowed.
    """

    check: str
    tensor: str
    axis: int = -1
    quotient: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Depict:
    """Run a failing case once more and depict some of its tensors."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depicted:
    """Answer to `Depict`: the pictures of each part that could be depicted."""

    pictures: Mapping[Part, tuple[Picture, ...]]


def part_of(item: Finding) -> Part | None:
    """Return what to depict of a finding, None where it is right or not about the values of a tensor."""
    if item.check not in DEPICTED or item.verdict not in (Verdict.FAIL, Verdict.INCONCLUSIVE) or item.pictures:
        return None
    if item.check == "slices":
        axis, quotient = item.numbers.get("axis", -1.0), item.numbers.get("quotient", 0.0)
        return Part(check=item.check, tensor=item.tensor, axis=int(axis), quotient=quotient)
    return Part(check=item.check, tensor=item.tensor)


def parts_of(findings: Iterable[Finding], tensors: Iterable[str]) -> tuple[Part, ...]:
    """Return what to depict of a case, of the tensors that were compared."""
    compared = set(tensors)
    parts = [part for item in findings if (part := part_of(item)) is not None and part.tensor in compared]
    return tuple(dict.fromkeys(parts))
