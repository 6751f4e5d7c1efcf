"""Maxima over several draws of an oracle's errors."""

from __future__ import annotations

from collections.abc import Iterable

from opcheck.core.outcome import OracleError


def pooled(draws: Iterable[OracleError]) -> tuple[OracleError, ...]:
    """Return one entry per tensor: maxima of the errors, the sum of the judged elements."""
    found: dict[str, OracleError] = {}
    for item in draws:
        before = found.get(item.tensor)
        if before is None:
            found[item.tensor] = item
            continue
        found[item.tensor] = OracleError(
            tensor=item.tensor,
            reference_error=max(before.reference_error, item.reference_error),
            rounding_floor=max(before.rounding_floor, item.rounding_floor),
            scale=max(before.scale, item.scale),
            judged=before.judged + item.judged,
            slices={
                axis: max(before.slices.get(axis, 0.0), item.slices.get(axis, 0.0))
                for axis in {**before.slices, **item.slices}
            },
        )
    return tuple(found.values())
