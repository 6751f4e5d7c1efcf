"""Draw a histogram of signed errors, the target's above the reference's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opcheck.core.pictures import Histogram
from opcheck.render.figures.ink import WIDTH, Ink, power_of_two

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 2  # numbers on each side of 0
CLEAR = 0.06  # of the width beside 0, where another number would touch it
LEAST = 0.6  # elements at the foot of a logarithmic scale, on which one element shows


def drawn(picture: Histogram, ink: Ink) -> Figure:
    """Return two panels with one scale: counts are logarithmic, for a few wrong elements among many."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure = Figure(figsize=(WIDTH, 2.5))
    figure.set_layout_engine("constrained", hspace=0.02, h_pad=0.02)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    bins = len(picture.target)
    for axes, counts, colour, name in (
        (panels[0], picture.target, ink.target, "target"),
        (panels[1], picture.reference, ink.reference, "reference"),
    ):
        axes.stairs([item or LEAST for item in counts], range(bins + 1), baseline=LEAST, fill=True, color=colour)
        axes.axvline(bins / 2, color=ink.text, linewidth=0.5, linestyle=(0, (2, 2)))
        axes.set_yscale("log")
        axes.set_ylim(LEAST, 3.0 * max(1, *picture.target, *picture.reference))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.text(0.01, 0.97, name, transform=axes.transAxes, va="top", color=colour, fontweight="bold")
    places, labels = _ticks(picture)
    panels[1].set_xlim(0, bins)
    panels[1].set_xticks(places, labels)
    panels[0].tick_params(bottom=False)
    figure.supylabel("elements", fontsize=9)
    panels[1].set_xlabel(f"signed error, {picture.unit}")
    return figure


def _ticks(picture: Histogram) -> tuple[list[float], list[str]]:
    """Return places among the bins and numbers: middles of even bins, edges of doubling ones."""
    edges, bins = picture.edges, len(picture.target)
    middle = bins // 2
    if math.isclose(edges[1] - edges[0], edges[middle + 1] - edges[middle]):
        step = max(1, math.ceil(middle / SIDE))
        chosen = [at for at in range(bins) if (at - middle) % step == 0]
        return [at + 0.5 for at in chosen], [_number((edges[at] + edges[at + 1]) / 2) for at in chosen]
    step = max(1, math.ceil((middle - 1) / SIDE))
    right = [at for at in range(len(edges) - 1, middle + 1, -step) if at - middle > bins * CLEAR]
    left = [len(edges) - 1 - at for at in right]
    return [*left, middle + 0.5, *reversed(right)], [*(_number(edges[at]) for at in left), "0",
                                                     *(_number(edges[at]) for at in reversed(right))]  # fmt: skip


def _number(value: float) -> str:
    if abs(value) < 1024:
        return f"{value:g}"
    return f"{'-' if value < 0 else ''}{power_of_two(math.log2(abs(value)))}"
