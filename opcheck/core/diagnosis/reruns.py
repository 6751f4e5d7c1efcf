"""What became right when one thing was changed: the memory layout, the family of values, the element type."""

from __future__ import annotations

from collections.abc import Iterator

from opcheck.core.diagnosis.scene import Hypothesis, Scene


def reruns(scene: Scene) -> Iterator[Hypothesis]:
    """Yield each change after which the target was within the threshold: that is a fact, so that its score is 1."""
    for rerun in scene.reruns:
        if rerun.error <= 1.0:
            yield Hypothesis(score=1.0, text=rerun.change)
