"""Fill tensors with a family of values; `opcheck.core.families` says which bug each is for."""

from __future__ import annotations

from torch import Tensor

from opcheck.core.formats import format_of
from opcheck.run.values.discrete import booleans, integers, offsets
from opcheck.run.values.places import PLACES
from opcheck.run.values.spread import SPREAD

__all__ = ["booleans", "fill", "integers", "offsets"]

_FILLS = {**SPREAD, **PLACES}


def fill(family: str, normal: Tensor, dtype: str, *, first: bool = True) -> Tensor:
    """Turn standard normals `[*S]` in float32 into the family's values, still in float32.

    Args:
        family: Name of a family that fills floating-point inputs.
        normal: What was drawn; it is not changed.
        dtype: Element type that the values are for.
        first: Whether this is the first floating-point tensor of the sample: in some families the others complete it.

    Raises:
        KeyError: There is no such family.
    """
    change = _FILLS[family]
    return change(normal, format_of(dtype), first) if normal.numel() else normal
