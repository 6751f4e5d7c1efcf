"""What base's own evidence had that head's has not: families of cases that were lost without a word of the policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opcheck.core.decision import Point
from opcheck.core.evidence import Evidence
from opcheck.merge.evidence import Found
from opcheck.merge.reasons import Reasons

_FAMILIES = {"dtypes": "element types", "families": "families of values", "layouts": "layouts", "variants": "variants"}
_SHOWN = 4


def points(found: Iterable[Found], base: Iterable[Evidence], reasons: Reasons) -> Iterator[Point]:
    """Yield, for each op whose evidence counts, what was tried in base's evidence of that backend and level, only."""
    lines = [line for line in base if line.whole]
    for item in found:
        now = item.line
        if now is None or item.fault is not None:
            continue
        same = (line for line in lines if (line.op, line.backend, line.level) == (now.op, now.backend, now.level))
        before = max(same, key=lambda line: line.finished, default=None)
        for name, called in _FAMILIES.items() if before is not None else ():
            gone = [text for text in getattr(before, name) if text not in getattr(now, name)]
            if gone:
                more = ", ..." if len(gone) > _SHOWN else ""
                sentence = f"its evidence on {now.backend} lacks {called} that base's has: "
                told = sentence + ", ".join(gone[:_SHOWN]) + more
                yield reasons.point("family-removed", now.op, "cases", told)
