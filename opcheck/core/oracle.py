"""What is seen of golden and reference themselves, before anything is judged by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ORACLE = "oracle"  # the check

#: Golden's own error may be this share of what it is to judge: of the threshold of a tensor, of an ulp of an element.
SHARE = 1 / 16
#: Relative to the scale. Constants of eight digits and tables in float32 are the same formula: 8 units of its roundoff.
SAME_FORMULA = 8 * 2.0**-24
#: Of the reference's own error, float32's at the least: 2^17 times what the same terms lose in float64.
CANCELLED = 2.0**-12
#: Relative to the scale: below this a difference of two orders is float64's noise, however small the threshold is.
NOISE = 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class Examine:
    """Run golden and reference against each other in FP64, and golden against its gradient, its orders and mpmath."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Where two answers, both in FP64, are furthest apart.

    Attributes:
        golden, other: The element's two values.
        error: Their distance.
        scale: `max|golden|` of the tensor.
    """

    tensor: str
    index: tuple[int, ...]
    golden: float
    other: float
    error: float
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One element of golden beside its value from mpmath.

    Attributes:
        at: The inputs, in words.
        allowed: The share of an ulp of the tensor's element type that the error may be.
    """

    tensor: str
    at: str
    golden: float
    exact: float
    error: float
    allowed: float


Gradient = Literal["holds", "fails", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """Answer to `Examine`.

    Attributes:
        formulas: Golden against the reference in FP64, a tensor each.
        orders: Golden against itself with its reductions in another order, a tensor each.
        points: Where golden is further from mpmath than allowed, the worst of each tensor.
        evaluated: Points that were compared with mpmath.
        gradient: What `gradcheck` says of golden.
        complaint: Its message, where golden's gradient is not that of its forward.
        itself: How the target is the reference, empty where it is not.
        digests: Digest of the bit pattern of each tensor that the reference gives.
        skipped: What was not looked at because it would say nothing, and why.
        not_covered: What could not be looked at, and why.
    """

    formulas: tuple[Gap, ...] = ()
    orders: tuple[Gap, ...] = ()
    points: tuple[Point, ...] = ()
    evaluated: int = 0
    gradient: Gradient = "skipped"
    complaint: str = ""
    itself: str = ""
    digests: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
