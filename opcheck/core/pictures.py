"""What is drawn of a tensor that is not simply right, as plain numbers: no tensor leaves the process that ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMap:
    """Where a tensor is wrong: `|target - golden|` in some unit, the largest one of each block of elements.

    The last two axes run down and across, with the maximum over those before them; a vector is written in lines.

    Attributes:
        unit: What errors are counted in: `"the threshold"`, `"an ulp of golden"` ...
        size: That unit in the unit of the tensor; NaN where it differs from element to element.
        down, across: What the two directions are: names of axes, or parts of one.
        extent: Elements down and across.
        block: Elements of a cell, down and across; the last cell of a line may have fewer.
        tile: Elements of a program, down and across; 0 where it is not known.
        cells: Lines of cells; Infinity where NaN or Inf is not where golden has it, NaN where nothing can be judged.
    """

    kind: Literal["error map"] = "error map"
    unit: str
    size: float
    shape: tuple[int, ...]
    down: str
    across: str
    extent: tuple[int, ...]
    block: tuple[int, ...]
    tile: tuple[int, ...]
    cells: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How often which signed error occurs in the target and in the reference.

    Attributes:
        edges: Edges of the bins, ascending, in `unit`; the outermost bins hold all that lies beyond them, too.
        target, reference: Elements in each bin.
    """

    kind: Literal["histogram"] = "histogram"
    unit: str
    edges: tuple[float, ...]
    target: tuple[int, ...]
    reference: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """How RMS errors grow with the length of a reduction, and the exponents fitted to them.

    Attributes:
        over: What the errors are divided by, in words; empty where they are in the unit of the tensor.
        excess, uncertainty: The target's exponent minus the reference's, and its standard error.
    """

    kind: Literal["slope"] = "slope"
    dim: str
    over: str
    lengths: tuple[int, ...]
    target: tuple[float, ...]
    reference: tuple[float, ...]
    target_exponent: float
    reference_exponent: float
    excess: float
    uncertainty: float


Picture: TypeAlias = ErrorMap | Histogram | Slope

_OF = {"error map": ErrorMap, "histogram": Histogram, "slope": Slope}
_WORDS = ("kind", "unit", "down", "across", "dim", "over")
_WHOLE = ("shape", "extent", "block", "tile", "lengths")


def picture_from(data: Mapping[str, Any]) -> Picture:
    """Read a picture back from JSON; the inverse of `to_json`."""
    counts = _WHOLE if data["kind"] != "histogram" else ("target", "reference")
    found = {key: value if key in _WORDS else _numbers(value, int if key in counts else float)
             for key, value in data.items()}  # fmt: skip
    picture: Picture = _OF[data["kind"]](**found)
    return picture


def _numbers(value: Any, number: type) -> Any:
    return tuple(_numbers(item, number) for item in value) if isinstance(value, list) else number(value)
