"""Casts: a rounding of the result, of an input or of what was accumulated to a narrower type."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import Tensor

from opcheck.core.diagnosis.scene import FEWEST, Hypothesis, Scene, distinct
from opcheck.core.floats import FORMATS, Format, round_to, ulp

# The range of float32 with the fraction of float16 (NVIDIA A100 whitepaper, 2020).
TF32 = Format(name="tf32", precision=11, e_min=-126, max=(2 - 2.0**-10) * 2.0**127, has_inf=True, bits=19)
NARROW = (TF32, *(FORMATS[name] for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")))
ON_GRID = 0.99  # share of elements; of random ones of the next wider type at most half are by chance
SLOPES = (0.25, 1.4)  # log error over log length: half for random roundings, 1 where they all have one sign
ROUNDINGS = (0.1, 8.0)  # error of an accumulator over its unit roundoff times the square root of the length


def casts(scene: Scene) -> Iterator[Hypothesis]:
    """Yield roundings of golden, golden of rounded inputs, then what the grid of the values and growth suggest."""
    own = FORMATS.get(scene.dtype)
    if own is None:
        return
    narrower = [fmt for fmt in NARROW if fmt.precision < own.precision]
    for fmt in narrower:
        text = f"golden rounded to {fmt.name}: a cast before the end"
        for exact in (scene.golden, round_to(scene.golden, own)):
            yield Hypothesis(score=scene.explained(round_to(exact, fmt)), text=text)
        text = f"golden truncated to {fmt.name}: a cast that drops bits and does not round"
        yield Hypothesis(score=scene.explained(truncated(scene.golden, fmt)), text=text)
    for how, value in scene.narrowed.items():
        yield Hypothesis(score=scene.explained(value), text=f"golden of {how}: a cast too early")
    for fmt in sorted(narrower, key=lambda item: (item.precision, item.bits)):
        yield from _on_grid(scene, fmt)
    yield from _grown(scene, narrower)


def truncated(g: Tensor, fmt: Format) -> Tensor:
    """Round float64 `[*S]` towards zero to a number of `fmt`."""
    nearest = round_to(g, fmt)
    below = nearest - ulp(nearest, fmt).copysign(g)
    return nearest.where(nearest.abs() <= g.abs(), below)


def _on_grid(scene: Scene, fmt: Format) -> Iterator[Hypothesis]:
    """All values are numbers of a narrower type, but not the nearest ones: more than one rounding to it."""
    kept = scene.wrong & scene.target.isfinite() & (scene.target != 0)
    values = scene.target[kept]
    reference = scene.reference[scene.reference.isfinite() & (scene.reference != 0)]
    if len(values) < FEWEST or len(reference) < FEWEST or distinct(values) < FEWEST:
        return
    share = float((round_to(values, fmt) == values).double().mean())
    usual = float((round_to(reference, fmt) == reference).double().mean())
    if share >= ON_GRID and usual <= 0.5:
        text = f"every value is a {fmt.name} number: an accumulator, or a sum of parts, in {fmt.name}"
        yield Hypothesis(score=share - 0.02, text=text)


def _grown(scene: Scene, narrower: list[Format]) -> Iterator[Hypothesis]:
    """The error grows with the length of the reduction from the level of a narrow type on."""
    if len(scene.growth) < 2 or any(error <= 0 for _, error in scene.growth):
        return
    (short, least), (long, most) = scene.growth[0], scene.growth[-1]
    slope = math.log(most / least) / math.log(long / short)
    for fmt in sorted({item.precision: item for item in narrower}.values(), key=lambda item: -item.precision):
        steps = [error / (fmt.unit * math.sqrt(length)) for length, error in scene.growth]
        if SLOPES[0] <= slope <= SLOPES[1] and all(ROUNDINGS[0] <= step <= ROUNDINGS[1] for step in steps):
            text = f"an accumulator of about {fmt.name}: the error grows as T^{slope:.1f} with the length T of the sum"
            yield Hypothesis(score=0.95, text=text)
            return
