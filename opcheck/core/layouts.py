"""Memory layouts of inputs and upstream gradients: what each is called and which bug it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opcheck.errors import BadCase

GRADIENT = "grad:"  # before the name of an output: the layout of its upstream gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to lay a tensor out.

    Attributes:
        bug: The mistake that it is for, as a sentence.
        rank: Fewest dimensions that it needs.
        for_inputs, for_gradients: Whether inputs and upstream gradients get it.
        same_values: Whether it leaves the logical values as drawn.
        alone: Whether it has a case of its own, on the interpreter.
    """

    name: str
    bug: str
    rank: int = 1
    for_inputs: bool = True
    for_gradients: bool = True
    same_values: bool = True
    alone: bool = False


LAYOUTS: tuple[Layout, ...] = (
    Layout(name="transposed", bug="The last two dimensions are swapped in memory: strides taken for granted.", rank=2),
    Layout(name="padded", bug="A slice of a wider buffer, NaN around it: the row length taken for the row stride."),
    Layout(name="offset", bug="It starts one element into its buffer: alignment taken for granted, offsets lost."),
    Layout(name="narrowed", bug="The second half of a larger tensor, as after chunk or the backward of cat.", rank=2),
    Layout(
        name="expanded", same_values=False,
        bug="Stride 0 along every dimension of a gradient, as .sum().backward() sends; along the first of an input.",
    ),
    Layout(name="channels_last", bug="Channels last in memory, as convolutions give.", rank=4),
    Layout(name="ones", bug="A gradient of ones: a backward that skips its work.", for_inputs=False, same_values=False),
    Layout(name="zero", bug="A gradient of zeros: 0/0, and stale outputs.", for_inputs=False, same_values=False),
    Layout(
        name="far", rank=2, alone=True,
        bug="One stride is so long that offsets pass 2^31 elements, in memory of which the rest is never touched: "
        "a row's number times its stride in 32 bits.",
    ),
)  # fmt: skip

FAR = "far"
_BY_NAME = {layout.name: layout for layout in LAYOUTS}


def layout(name: str) -> Layout:
    """Return the layout of that name.

    Raises:
        BadCase: There is none.
    """
    if name not in _BY_NAME:
        raise BadCase(f"{name!r} is not a layout; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def layouts_of(text: str) -> dict[str, str]:
    """Read a case's layout, `"x=transposed+grad:out=expanded"`, as a table from tensor to layout.

    Raises:
        BadCase: It is not of that form, or names no layout.
    """
    table: dict[str, str] = {}
    for item in filter(None, text.split("+")):
        tensor, equals, name = item.partition("=")
        if not equals or not tensor:
            raise BadCase(f"layout {item!r} should read tensor=layout, or grad:output=layout")
        table[tensor] = layout(name).name
    return table


def revalues_gradient(table: Mapping[str, str]) -> bool:
    """Say whether an upstream gradient under these layouts is constant or zero instead of random."""
    return any(tensor.startswith(GRADIENT) and not layout(name).same_values for tensor, name in table.items())


def layout_text(table: Mapping[str, str]) -> str:
    """Write a table from tensor to layout as a case's layout; the inverse of `layouts_of`."""
    return "+".join(f"{tensor}={name}" for tensor, name in table.items())
