"""Integers, offsets and booleans over their legal range; what a family does not fill is drawn at random."""

from __future__ import annotations

import torch
from torch import Tensor

from opcheck.core.facts import InputKind
from opcheck.core.families import family


def integers(
    name: str, low: int, high: int, shape: tuple[int, ...], generator: torch.Generator, kind: InputKind = "integer"
) -> Tensor:
    """Draw int64 values `[*shape]` with `low <= value < high` in a family."""
    last = high - 1
    drawn = torch.randint(low, high, shape, generator=generator)
    if not drawn.numel():
        return drawn
    match _filling(name, kind):
        case "lowest":
            return torch.full(shape, low)
        case "highest":
            return torch.full(shape, last)
        case "equal":
            return torch.full(shape, (low + last) // 2)
        case "one_lowest":
            return _one_at(torch.clamp(drawn, min=min(low + 1, last)), low)
        case "one_highest":
            return _one_at(torch.clamp(drawn, max=max(last - 1, low)), last)
        case "ascending":
            return drawn.reshape(-1).sort().values.reshape(shape)
        case "descending":
            return drawn.reshape(-1).sort(descending=True).values.reshape(shape)
        case "alternating":
            odd = torch.arange(drawn.numel()).reshape(shape) % 2 == 1
            return torch.where(odd, last, low)
        case _:
            return drawn


def booleans(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw a mask `[*shape]` in a family; off is the lowest."""
    return integers(name, 0, 2, shape, generator, "boolean").to(torch.bool)


def offsets(name: str, total: int, parts: int, generator: torch.Generator) -> Tensor:
    """Draw `[parts + 1]` int32 offsets from 0 to `total` that never decrease, in a family.

    Three parts or more are drawn with an empty one and one of length 1 among them.
    """
    inner = max(parts - 1, 0)
    match _filling(name, "offsets"):
        case "lowest":
            cuts = torch.zeros(inner, dtype=torch.int64)
        case "highest":
            cuts = torch.full((inner,), total)
        case "equal":
            cuts = torch.full((inner,), total // 2)
        case "alternating":
            cuts = torch.where(torch.arange(inner) < (inner + 1) // 2, 0, total)
        case "unit_parts":
            cuts = torch.arange(1, inner + 1).clamp(max=total)
        case _:
            cuts = _cuts(total, parts, generator)
    ends = torch.tensor([0]), torch.tensor([total] if parts > 0 else [], dtype=torch.int64)
    return torch.cat((ends[0], cuts, ends[1])).to(torch.int32)


def _cuts(total: int, parts: int, generator: torch.Generator) -> Tensor:
    """Return the inner offsets of random parts."""
    short = [0, 1] if parts >= 3 and total else []
    rest = parts - len(short)
    cuts = torch.randint(0, total - sum(short) + 1, (max(rest - 1, 0),), generator=generator).sort().values
    ends = torch.tensor([0]), torch.tensor([total - sum(short)])
    lengths = torch.cat((torch.diff(torch.cat((ends[0], cuts, ends[1]))), torch.tensor(short, dtype=torch.int64)))
    return lengths[torch.randperm(lengths.numel(), generator=generator)].cumsum(0)[:-1]


def _filling(name: str, kind: InputKind) -> str:
    found = family(name)
    return name if found is not None and kind in found.fills else "normal"


def _one_at(values: Tensor, value: int) -> Tensor:
    values.view(-1)[(2 * values.numel()) // 3] = value
    return values
