"""Draw how errors grow with the length of a reduction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opcheck.core.pictures import Slope
from opcheck.render.figures.ink import WIDTH, Ink, power_of_two

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawn(picture: Slope, ink: Ink) -> Figure:
    """Return points and fitted power laws on logarithms of base 2."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
    axes = figure.add_subplot()
    for name, values, exponent, colour, mark in (
        ("target", picture.target, picture.target_exponent, ink.target, "o"),
        ("reference", picture.reference, picture.reference_exponent, ink.reference, "s"),
    ):
        label = f"{name}: length to the power {exponent:.2f}"
        axes.plot(picture.lengths, values, mark, color=colour, markersize=5, label=label)
        axes.plot(picture.lengths, _fitted(picture.lengths, values, exponent), color=colour, linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(picture.lengths, [str(item) for item in picture.lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_two(math.log2(value))))
    axes.grid(color=ink.rule, linewidth=0.5)
    axes.set_xlabel(picture.dim)
    axes.set_ylabel(f"RMS error over {picture.over}" if picture.over else "RMS error")
    difference = f"difference {picture.excess:+.2f} ± {2 * picture.uncertainty:.2f}"
    axes.legend(
        title=difference, fontsize=8, title_fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), alignment="left"
    )
    return figure


def _fitted(lengths: Sequence[int], values: Sequence[float], exponent: float) -> list[float]:
    """Return the power law of this exponent through the values' centre of gravity, on logarithms."""
    offset = sum(math.log(y) - exponent * math.log(x) for x, y in zip(lengths, values, strict=True)) / len(lengths)
    return [math.exp(offset + exponent * math.log(item)) for item in lengths]
