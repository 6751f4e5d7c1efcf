"""Stabilisation: rows are wrong exactly where an input is extreme."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import Tensor

from opcheck.core.diagnosis.scene import Hypothesis, Scene

JUMP = 30.0  # relative error of the wrong rows over that of the right ones: more than large values bring along


def stabilisation(scene: Scene) -> Iterator[Hypothesis]:
    """Yield, for inputs with the same first axis, how surely the wrong rows are those of the largest values."""
    if not scene.golden.dim() or not scene.golden.shape[0]:
        return
    wrong, error = _rows(scene.wrong.double()) > 0, _rows((scene.target - scene.golden).abs().nan_to_num(math.inf))
    relative = error / _rows(scene.golden.abs().nan_to_num(0.0)).clamp(min=1e-300)
    count = int(wrong.sum())
    if not 0 < count <= len(wrong) // 2:
        return
    if float(relative[wrong].min()) < JUMP * float(relative[~wrong].max()):
        return
    for name, value in scene.named.items():
        if value.shape[:1] != scene.golden.shape[:1] or name.startswith(("out", "grad ")):
            continue
        for what, size in (("largest |", _rows(value.abs())), ("largest ", _rows(value)), ("lowest ", -_rows(-value))):
            sign = -1.0 if what == "lowest " else 1.0
            if float((sign * size[wrong]).min()) > float((sign * size[~wrong]).max()):
                bar = "|" if what.endswith("|") else ""
                text = (
                    f"wrong exactly where the {what}{name}{bar} is extreme: an exponent that is not stabilised, a range"
                )
                yield Hypothesis(score=1.0 - 1.0 / math.comb(len(wrong), count), text=text)


def _rows(value: Tensor) -> Tensor:
    return value.reshape(value.shape[0], -1).amax(1)
