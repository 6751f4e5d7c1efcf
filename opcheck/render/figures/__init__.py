"""Draw pictures as SVG: error maps, histograms of signed errors, slopes; matplotlib must be installed."""

from __future__ import annotations

import dataclasses
import io
import math
import re
import textwrap
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opcheck.core.pictures import ErrorMap, Histogram, Picture
from opcheck.render.figures.ink import INLINE, VARIABLES, Ink
from opcheck.render.plain import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Of matplotlib: letters stay letters, so that a page gives them its own type and a reader can search them.
SETTINGS = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "text.parse_math": False,  # a name may hold dollar signs
}


SMALL = 6.5
WORDS = 0.8  # inches of a file's title and caption
LINE = 68  # letters of that size that are as wide as a picture


def file(picture: Picture, title: str) -> str:
    """Return a picture as an SVG file with its title and caption, dark on white."""
    return _svg(picture, Ink(), salt=clean(title), title=title)


def inline(picture: Picture, salt: str) -> str:
    """Return a picture as an `<svg>` for a page, whose colours are the page's variables.

    Args:
        salt: Something that no other picture of the page has: ids come from it.
    """
    text = _svg(picture, INLINE, salt=salt)
    text = text[text.index("<svg") :]
    for what in (r"<metadata>.*?</metadata>", r"<style.*?</style>", r' xmlns(:\w+)?="[^"]*"', r"<!--.*?-->"):
        text = re.sub(what, "", text, flags=re.DOTALL)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', text, count=1)
    text = re.sub(r" id=\"([^\"]*)\"", lambda found: found[0] if f"#{found[1]}" in text else "", text)
    text = re.sub(r"\n\s*", "\n", text.replace("font-family: 'DejaVu Sans'; ", ""))
    for sentinel, variable in VARIABLES.items():
        text = text.replace(sentinel, variable)
    return text


def _svg(picture: Picture, ink: Ink, *, salt: str, title: str = "") -> str:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    colours = dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor", "text.color", "axes.labelcolor"), ink.text)
    settings: Any = {**SETTINGS, **colours, "axes.facecolor": ink.paper, "svg.hashsalt": salt}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a name has a letter which matplotlib's own type lacks
        figure = _figure(_cleaned(picture), ink)
        if title:
            figure.set_figheight(figure.get_figheight() + WORDS)
            figure.suptitle(_wrapped(title), fontsize=SMALL)
            figure.supxlabel(_wrapped(caption(picture)), fontsize=SMALL)
        FigureCanvasSVG(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None}, facecolor=ink.paper)
    return out.getvalue()


def _figure(picture: Picture, ink: Ink) -> Figure:
    from opcheck.render.figures import error_map, histogram, slope

    if isinstance(picture, ErrorMap):
        return error_map.drawn(picture, ink)
    return histogram.drawn(picture, ink) if isinstance(picture, Histogram) else slope.drawn(picture, ink)


def _cleaned(picture: Picture) -> Picture:
    """Return a picture whose every word may stand in XML."""
    values = {item.name: getattr(picture, item.name) for item in dataclasses.fields(picture) if item.name != "kind"}
    words: dict[str, Any] = {name: clean(value) for name, value in values.items() if isinstance(value, str)}
    return replace(picture, **words)


def _wrapped(text: str) -> str:
    """Break lines here: matplotlib takes dollar signs for mathematics where it breaks them."""
    return "\n".join(textwrap.fill(line, LINE) for line in clean(text).splitlines())


def caption(picture: Picture) -> str:
    """Say in words what a picture shows, for those who do not see it, too."""
    if isinstance(picture, ErrorMap):
        cells = [item for line in picture.cells for item in line if not math.isnan(item)]
        beyond = sum(item > 1 for item in cells)
        lost = sum(item == math.inf for item in cells)
        size = f" = {picture.size:.1e}" if not math.isnan(picture.size) else ""
        block = "one element" if picture.block == (1, 1) else f"{' x '.join(map(str, picture.block))} elements"
        parts = [f"|target - golden| in units of {picture.unit}{size}, the largest in each cell of {block}"]
        largest = max((item for item in cells if math.isfinite(item)), default=0.0)
        parts.append(f"{beyond} of {len(cells)} cells beyond 1, the largest {largest:.2g}")
        parts += [f"{lost} with NaN or Inf where golden has none, or the reverse"] if lost else []
        parts += [_tiles(picture)] if any(picture.tile) else []
        return "; ".join(parts)
    if isinstance(picture, Histogram):
        target, reference = sum(picture.target), sum(picture.reference)
        return (
            f"signed errors in units of {picture.unit}: {target} elements of the target, {reference} of the reference"
        )
    over = f" over {picture.over}" if picture.over else ""
    return (
        f"RMS error{over} by the length of {picture.dim}: exponents {picture.target_exponent:.2f} (target) and "
        f"{picture.reference_exponent:.2f} (reference), {picture.excess:+.2f} +- {2 * picture.uncertainty:.2f} apart"
    )


def _tiles(picture: ErrorMap) -> str:
    sizes = [f"{size} of {name}" for size, name in zip(picture.tile, (picture.down, picture.across), strict=True)
             if size]  # fmt: skip
    return f"lines between programs' tiles: {', '.join(sizes)}"
