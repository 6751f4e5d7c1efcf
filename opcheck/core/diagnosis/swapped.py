"""Another tensor in the place of the right one: swapped gradients or outputs, an input passed through."""

from __future__ import annotations

from collections.abc import Iterator

from opcheck.core.diagnosis.scene import Hypothesis, Scene


def swapped(scene: Scene) -> Iterator[Hypothesis]:
    """Yield how well each named tensor of the same shape is what the target gave, as it is or negated."""
    for name, value in scene.named.items():
        if name == scene.tensor or value.shape != scene.golden.shape:
            continue
        same = any(name.startswith(kind) and scene.tensor.startswith(kind) for kind in ("grad ", "out"))
        role = "swapped, or returned in the wrong order" if same else "passed through unchanged"
        yield Hypothesis(score=scene.explained(value), text=f"the values of {name} in its place: {role}")
        yield Hypothesis(score=scene.explained(-value), text=f"the values of -{name} in its place")
