"""Many shapes in one process: none is answered by what was kept for another, and little is kept for each."""

from __future__ import annotations

from dataclasses import replace

from opcheck.core.case import Case
from opcheck.core.resized import variations
from opcheck.core.stress import Endured
from opcheck.errors import OpcheckError
from opcheck.run.comparison import Comparison, shortened
from opcheck.run.roles import RoleFailed
from opcheck.run.stress.counting import Counter, aside

AGAIN = "after other shapes"
STEP = 2  # shapes between two counts


def reshaped(comparison: Comparison, shapes: int) -> Endured:
    """Call the op in one shape after the other, then in the opposite order; the values of a shape stay."""
    contract, first = comparison.contract, comparison.case
    steps = range(1, shapes + 1)
    others = [dims for _, dims in zip(steps, variations(contract, first.dims, steps=shapes), strict=False)]
    counter = Counter(comparison.device)
    done: list[tuple[Case, dict[str, str]]] = []
    why = ""
    with aside():
        for at, dims in enumerate(others):
            case = replace(first, dims=dims)
            if not at % STEP:
                counter.count()
            try:
                comparison.tell()
                done.append((case, comparison.digests(case)))
            except (RoleFailed, OpcheckError) as failed:
                why = shortened(str(failed))
        counter.count()
        for case, before in reversed(done):
            comparison.tell()
            comparison.same(AGAIN, comparison.run(comparison.spec, case), before, case)
    if why:
        comparison.note(f"{len(others) - len(done)} shapes were not tried: {why}")
    comparison.note(f"{len(done)} shapes")
    whole = len(done) == len(others) and not len(others) % STEP
    return Endured(behaviour=comparison.behaviour(), growth=counter.growth(STEP, "shape") if whole else ())
