"""What a wrong tensor looks like: hypotheses with scores, in the order in which one would look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from opcheck.core.diagnosis.approximation import approximations
from opcheck.core.diagnosis.casts import casts
from opcheck.core.diagnosis.factors import factors
from opcheck.core.diagnosis.indexing import indexing
from opcheck.core.diagnosis.reruns import reruns
from opcheck.core.diagnosis.scene import Hypothesis, Rerun, Scene
from opcheck.core.diagnosis.stabilisation import stabilisation
from opcheck.core.diagnosis.swapped import swapped
from opcheck.core.diagnosis.terms import terms

__all__ = ["STATED", "Hypothesis", "Rerun", "Scene", "best", "diagnoses", "told"]

STATED = 0.95  # the score from which on a hypothesis is told
MOST = 2
UNWRITTEN = ("zeros", "NaN")  # how a pattern starts that leaves no values to explain
ALIKE = 0.02  # scores that do not differ by more are decided by the order of the kinds

KINDS: tuple[Callable[[Scene], Iterator[Hypothesis]], ...] = (
    reruns, indexing, swapped, casts, factors, stabilisation, terms, approximations,
)  # fmt: skip


def diagnoses(scene: Scene) -> tuple[Hypothesis, ...]:
    """Return the best hypothesis of each kind that has the stated score, the best one first."""
    found = [top for kind in KINDS if (top := best(kind(scene))) is not None and top.score >= STATED]
    return tuple(sorted(found, key=lambda item: -round(item.score / ALIKE)))


def best(hypotheses: Iterable[Hypothesis]) -> Hypothesis | None:
    """Return the first hypothesis of the highest score, None where there is none; the simpler ones come first."""
    top: Hypothesis | None = None
    for item in hypotheses:
        if top is None or item.score > top.score + ALIKE / 4:
            top = item
    return top


def told(pattern: str, found: Iterable[Hypothesis]) -> str:
    """Return the best one or two in words; `pattern`, what the place alone suggests, counts where there is room."""
    texts = [item.text for item in found][:MOST]
    if pattern.startswith(UNWRITTEN):
        return "; or ".join((pattern, *texts[: MOST - 1]))
    said = any(text.startswith(pattern.partition(" (")[0].partition(" throughout")[0]) for text in texts)
    if pattern and not said and len(texts) < MOST:
        texts.append(pattern)
    return "; or ".join(texts)
