"""The colours of pictures: fixed ones for files, the page's own ones for pictures in a page."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 3.7  # inches of every picture: a phone shows it nearly unscaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """What a picture is drawn with."""

    text: str = "#1d232b"
    rule: str = "#c3cad3"
    target: str = "#b3402a"
    reference: str = "#4f6f8f"
    paper: str = "white"


#: matplotlib takes no CSS variables: these stand for them, and no picture has them otherwise.
INLINE = Ink(text="#010101", rule="#010102", target="#010103", reference="#010104", paper="none")
VARIABLES = {
    INLINE.text: "currentColor",
    INLINE.rule: "var(--rule)",
    INLINE.target: "var(--target)",
    INLINE.reference: "var(--reference)",
}

#: Edges of the classes of an error map, in units of what is allowed, which 1 is still within; then their colours.
LEVELS = (0.0, 0.125, 0.25, 0.5, 1.001, 2.0, 4.0, 16.0, 64.0, 1024.0, 1e299)
COLOURS = (
    "#eef3f8", "#d5e2ee", "#b3cbe0", "#8badcb",
    "#f7cf87", "#f0a860", "#e27a44", "#c94f37", "#9c2a34", "#671733",
)  # fmt: skip
LOST = "#22102e"  # NaN or Inf where golden has none, or the reverse
UNJUDGED = "#9aa3ad"


def power_of_two(exponent: float) -> str:
    """Write a power of two with a raised exponent, in letters that any type has."""
    return "2" + str(round(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
