"""Draw an error map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opcheck.core.pictures import ErrorMap
from opcheck.render.figures.ink import COLOURS, LEVELS, LOST, UNJUDGED, WIDTH, Ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 32  # between tiles; more would be grey
INFINITE = 1e300


def drawn(picture: ErrorMap, ink: Ink) -> Figure:
    """Return the map with a scale beside it; 1 is what is allowed."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure

    colours = ListedColormap(list(COLOURS)).with_extremes(over=LOST, bad=UNJUDGED)
    lines, across = len(picture.cells), len(picture.cells[0])
    height = 2.7 * min(1.0, max(0.28, math.sqrt(lines / across)))
    figure = Figure(figsize=(WIDTH, height + 0.85), layout="constrained")
    axes = figure.add_subplot()
    cells = [[INFINITE if item == math.inf else item for item in line] for line in picture.cells]
    image = axes.imshow(
        cells, cmap=colours, norm=BoundaryNorm(list(LEVELS), len(COLOURS)), interpolation="none", aspect="auto",
        extent=(0, across * picture.block[1], lines * picture.block[0], 0),
    )  # fmt: skip
    axes.spines[:].set_visible(True)  # what is wrong in the last column is dark, as a page may be
    axes.set_xlim(0, picture.extent[1])
    axes.set_ylim(picture.extent[0], 0)
    axes.set_xlabel(picture.across)
    axes.set_ylabel(picture.down)
    _whole_ticks(axes)
    if not picture.down:
        axes.set_yticks([])
    for size, extent, line in zip(picture.tile, picture.extent, (axes.axhline, axes.axvline), strict=True):
        if size and 1 < extent / size <= MOST_LINES:
            for at in range(size, extent, size):
                line(at, color=Ink().text, linewidth=0.5, linestyle=(0, (2, 2)))
    bar = figure.colorbar(
        image, ax=axes, location="bottom", spacing="uniform", ticks=LEVELS[:-1], aspect=36, pad=0.02, shrink=0.98
    )
    bar.ax.set_xticklabels(["0", "1/8", "1/4", "1/2", "1", "2", "4", "16", "64", "1024"])
    bar.ax.tick_params(length=0, labelsize=7.5)
    bar.outline.set_visible(False)
    return figure


def _whole_ticks(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
