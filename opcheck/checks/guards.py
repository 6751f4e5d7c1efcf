"""What the check `memory` says of a run between guard bands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opcheck.core.guards import Banded, Swayed, Trespass, Unwritten, own_kernels
from opcheck.core.memory import ATEN_ONLY, NO_LAUNCH
from opcheck.core.outcome import Outcome, Returned
from opcheck.core.verdict import Verdict

_STORED = "a missing mask, a wrong grid, or a row length taken for a stride: it breaks a neighbour's memory"
_HINTS = {
    "bands": "a read past the end of a tensor: a missing mask, or a wrong stride",
    "poison": "memory of torch.empty is used as if it were zeros",
    "left": "a grid that is too small, a mask that is too narrow, or a sum that starts in torch.empty",
}
_MOST_KERNELS = 8  # named in a finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One sentence about a tensor that breaks the law, and what it looks like."""

    tensor: str
    detail: str
    hint: str


def complaints(found: Banded) -> Iterator[Said]:
    """Yield what breaks the law of memory."""
    yield from (Said(tensor=item.tensor, detail=_written(item), hint=_STORED) for item in found.trespasses)
    yield from (Said(tensor=item.tensor, detail=_read(item), hint=_HINTS[item.by]) for item in found.swayed)
    yield from (Said(tensor=item.tensor, detail=_left(item), hint=_HINTS["left"]) for item in found.unwritten)


def witness(found: Banded, backend: str) -> str:
    """Say what ran, and between how many bands; on the CPU no kernel is known to be the op's own."""
    bands = f"the memory around {found.given} tensors and {found.allocated} allocations is as it was"
    if found.launches:
        return f"launches of {', '.join(map(str, found.launches))}; {bands}"
    if backend == "cpu":
        return f"{NO_LAUNCH}; {bands}"
    if found.kernels is None:
        return f"which kernels ran is not known ({found.unseen or 'they were not counted'}); {bands}"
    own = own_kernels(found.kernels)
    if not own:
        return f"{ATEN_ONLY}; {bands}"
    named = ", ".join(f"{item.name} x {item.count}" for item in own[:_MOST_KERNELS])
    more = f" and {len(own) - _MOST_KERNELS} more" if len(own) > _MOST_KERNELS else ""
    return f"kernels {named}{more}; {bands}"


def examples() -> Iterator[tuple[str, Verdict, Outcome]]:
    """Yield evidence of guarded runs with the verdict that it must be given."""
    stored = Trespass(tensor="x", side="behind", offset=387, count=4, band=4096)
    read = Swayed(tensor="out", by="bands", offset=386, count=1, total=387)
    empty = Swayed(tensor="grad w", by="poison", offset=0, count=129, total=129)
    left = Unwritten(tensor="out", offset=127, count=1, total=129)
    rows = (
        ("a result is left as allocated", Verdict.FAIL, Banded(given=2, unwritten=(left,))),
        ("bands are as they were", Verdict.PASS, Banded(given=2, allocated=1)),
        ("a band changes", Verdict.FAIL, Banded(given=2, trespasses=(stored,))),
        ("a result follows the bands", Verdict.FAIL, Banded(given=2, swayed=(read,))),
        ("a result follows the poison", Verdict.FAIL, Banded(given=2, swayed=(empty,))),
    )
    yield from ((name, verdict, Returned(evidence=found)) for name, verdict, found in rows)


def _written(item: Trespass) -> str:
    return (
        f"{item.count} bytes of the {item.band} {item.side} it were written, the nearest at element {item.offset}, "
        f"counted from its first one"
    )


def _left(item: Unwritten) -> str:
    return f"{item.count} of {item.total} elements still hold what torch.empty gave, the first is number {item.offset}"


def _read(item: Swayed) -> str:
    what = "lies outside of the tensors" if item.by == "bands" else "torch.empty holds before it is written"
    elements = f"{item.count} of {item.total} elements, the first is number {item.offset}"
    kind = "are NaN where that is NaN" if item.nan_only else "change their bits with it"
    return f"what {what} reaches it: {elements}, {kind}"
