"""What a standalone script is made of, as plain values: arguments, upstream gradients, and what must come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: What the script asks of the op: values near to golden's, errors without a mean of their own, that it comes back at
#: all, or that it raises.
Question = Literal["values", "mean", "returns", "refuses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A tensor of the script, with the whole memory that it is a view of.

    Attributes:
        variable: Its name in the script.
        dtype: Name of its element type.
        size, stride, offset: The view, in elements.
        values: Its memory as a Python list; empty where it lies in the file under the variable's name.
        of: The variable whose memory it shares; it then has none of its own.
        leaf: Whether it requires a gradient.
    """

    variable: str
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    values: str = ""
    of: str = ""
    leaf: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One failing case, taken apart.

    Attributes:
        module: The module that registers the op.
        arguments: The arguments of the call, as source.
        stored: Every tensor, in the order in which the script makes them.
        leaves: The variable of each input that requires a gradient, by the gradient's name `"grad x"`.
        upstream: The variable of each upstream gradient, by the output's name.
        mutated: The variable of each argument that the op writes into, by its name.
        form: Element type and shape of the tensor that is judged, as source.
        allowed: How far it may be from `expected`, as source; for `"mean"` the two limits in ulps.
        clip: For `"mean"`, ulps at which an error is clipped.
        narrow: Whether it needs the repaired interpreter, for an element type in which Triton's own computes nonsense.
        mark: What the target gave: the digest of the tensor judged, or how the run ended.
    """

    question: Question
    module: str
    arguments: str
    stored: tuple[Stored, ...] = ()
    leaves: Mapping[str, str] = field(default_factory=dict)
    upstream: Mapping[str, str] = field(default_factory=dict)
    mutated: Mapping[str, str] = field(default_factory=dict)
    form: tuple[str, str] = ("", "")
    allowed: str = ""
    clip: float = 0.0
    narrow: bool = False
    mark: str = ""


def captured_from(data: Mapping[str, Any]) -> Captured:
    """Read it back from JSON; the inverse of `opcheck.core.report.to_json`."""
    stored = tuple(
        Stored(**{**item, "size": tuple(item["size"]), "stride": tuple(item["stride"])}) for item in data["stored"]
    )
    return Captured(**{**data, "stored": stored, "form": tuple(data["form"])})
