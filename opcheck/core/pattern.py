"""Where the wrong elements of a tensor are, in words, and what such a place looks like."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor

from opcheck.core.outcome import Located

FEWEST = 4  # elements with the same ratio to golden; a single one has some ratio whatever happened to it


def locate(
    wrong: Tensor, target: Tensor, golden: Tensor, *, axes: tuple[str, ...] = (), tiles: Mapping[str, int] | None = None
) -> Located:
    """Describe the elements marked in `wrong`.

    Args:
        wrong: Mask of the elements that are too far from golden, `[*S]`.
        target, golden: The two answers in float64, `[*S]`.
        axes: Names of the axes where they are known, outermost first.
        tiles: Tile of each named dimension, to tell a tail from a block.
    """
    total, count = wrong.numel(), int(wrong.sum())
    if not count:
        return Located(wrong=0, total=total, where="no element when run again: the target is not deterministic")
    names = axes if len(axes) == wrong.dim() else tuple(f"axis {axis}" for axis in range(wrong.dim()))
    spans = [_span(wrong, axis, names[axis]) for axis in range(wrong.dim())]
    where = ", ".join(text for text, _ in spans if text) or "spread over the whole tensor"
    values = f"{count} of {total} elements, {where}"
    looks_like = _ratio(wrong, target, golden) or next((hint for _, hint in spans if hint), "")
    return Located(wrong=count, total=total, where=values, looks_like=looks_like)


def _span(wrong: Tensor, axis: int, name: str) -> tuple[str, str]:
    """Describe the indices of one axis that hold a wrong element; empty where it is nearly all of them."""
    others = [other for other in range(wrong.dim()) if other != axis]
    hit = (wrong.any(dim=tuple(others)) if others else wrong).nonzero().reshape(-1).tolist()
    size = wrong.shape[axis]
    if size < 2 or len(hit) > max(1, size // 2):
        return "", ""
    first, last = hit[0], hit[-1]
    block = last - first + 1 == len(hit)
    if block and last == size - 1:
        which = f"all in the last of {name}" if len(hit) == 1 else f"all in {name} {first} to {last}, the end"
        return which, f"the tail of {name} ({size} of them): a mask, a bound or an extent that is off"
    if block and len(hit) == 1:
        return f"all in {name} {first}", f"one index of {name} that is skipped or overwritten"
    if block:
        return f"all in {name} {first} to {last}", f"one block of {name} that is skipped, repeated or overwritten"
    step = hit[1] - hit[0]
    if len(hit) > 2 and all(b - a == step for a, b in pairwise(hit)):
        return f"every {step}th of {name} from {first}", f"a stride of {step} along {name}"
    return f"in {len(hit)} of {size} {name}", ""


def _ratio(wrong: Tensor, target: Tensor, golden: Tensor) -> str:
    t, g = target[wrong], golden[wrong]
    kept = g.abs() > 0
    if not bool(kept.any()):
        return ""
    if bool((t[kept] == 0).all()):
        return "zeros where golden has none: never written, or masked away"
    if bool(t.isnan().all()):
        return "NaN: never written, or 0/0"
    share = float(kept.double().mean())
    ratios = t[kept] / g[kept]
    middle = float(ratios.median())
    steady = bool(((ratios - middle).abs() <= 0.1 * abs(middle - 1.0)).double().mean() > 0.95)
    if steady and share > 0.5 and len(ratios) >= FEWEST and torch.isfinite(ratios).all():
        return f"golden times {middle:.4g} throughout: a constant factor"
    return ""
