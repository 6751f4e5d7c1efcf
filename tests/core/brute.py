"""The laws of structure and numerics in plain Python, element by element, on exact rationals: the oracle of `measure`.

Written from the definitions in docs/numerics.md; nothing here uses torch or the code under test.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from tests.core.exact import LAYOUTS, nearest_even, quantum


def distance(a, b):
    """|a - b| of two finite floats, rounded once to float64."""
    try:
        return float(abs(Fraction(a) - Fraction(b)))
    except OverflowError:
        return math.inf


def quotient(error, unit):
    """A float64 over a rational, rounded once."""
    if not math.isfinite(error):
        return error
    try:
        return float(Fraction(error) / unit)
    except OverflowError:
        return math.inf


def overflow_bound(name):
    """Halfway from the largest number to the one that would follow it; Inf where that is no float64."""
    layout = LAYOUTS[name]
    bound = layout.largest + quantum(layout.largest, name) / 2
    return math.inf if name == "float64" else float(bound)


def alike_sign(a, b):
    return (a > 0 and b > 0) or (a < 0 and b < 0)


def alike_value(a, b):
    return (math.isnan(a) and math.isnan(b)) or a == b


@dataclass(slots=True)
class Element:
    """What the laws say of one element: a kind of disorder, a gap to the overflow bound, or a pair of errors."""

    judged: bool = False
    compared: bool = False
    void: bool = False
    alike: bool = False
    held: float | None = None
    kind: str = ""
    gap: float = 0.0
    target_error: float = 0.0
    reference_error: float = 0.0
    floor: float = 0.0
    ulps: float = 0.0
    reference_ulps: float = 0.0


def element(t, f, g, name, *, overflow="ieee", void_allowed=False):
    """Judge one element of target `t`, reference `f` and golden `g` (floats)."""
    rounded = nearest_even(g, name)
    found = Element()
    found.judged = all(map(math.isfinite, (f, g, rounded)))
    found.compared = found.judged and math.isfinite(t)
    if found.judged:
        step = quantum(Fraction(g), name)
        found.reference_error, found.floor = distance(f, g), distance(rounded, g)
        found.reference_ulps = quotient(found.reference_error, step)
        if found.compared:
            found.target_error = distance(t, g)
            found.ulps = quotient(found.target_error, step)
    if overflow == "ieee" and not LAYOUTS[name].ieee:
        overflow = "nan"
    if math.isnan(g):
        found.void = void_allowed
        found.kind = "" if void_allowed or math.isnan(t) else "NaN missing"
    elif math.isinf(rounded):
        found.kind, found.gap = beyond(t, g, name, overflow)
        if overflow == "ieee" and not math.isinf(g) and math.isnan(t) and math.isnan(f):
            found.alike, found.kind = True, ""
    elif not math.isfinite(f):
        if math.isfinite(t):
            found.held = distance(t, g)
        elif alike_value(t, f):
            found.alike = True
        else:
            found.kind = "NaN where golden is finite" if math.isnan(t) else "Inf where golden is finite"
    elif not math.isfinite(t):
        found.kind, found.gap = within(t, g, name, overflow)
    return found


def beyond(t, g, name, overflow):
    """Golden overflows: the promised value is right, and next to the bound so is the largest value."""
    largest = float(LAYOUTS[name].largest)
    if math.isinf(t) and not alike_sign(t, g):
        return "Inf of the wrong sign", 0.0
    promised = {
        "ieee": math.isinf(t),
        "nan": math.isnan(t),
        "saturate": math.isfinite(t) and abs(t) == largest and alike_sign(t, g),
    }
    if promised[overflow]:
        return "", 0.0
    if math.isinf(g) or not math.isfinite(t) or not alike_sign(t, g):
        return "Inf missing", 0.0
    short = distance(largest, abs(t))
    return "", short if overflow == "saturate" else max(short, distance(abs(g), overflow_bound(name)))


def within(t, g, name, overflow):
    """Golden does not overflow and the target is not finite: only an overflow that comes too early can be right."""
    early = {
        "ieee": math.isinf(t) and alike_sign(t, g),
        "nan": math.isnan(t) and abs(g) > float(LAYOUTS[name].largest) / 2,
        "saturate": False,
    }
    if early[overflow]:
        bound = overflow_bound(name)
        return "", math.inf if math.isinf(bound) else distance(bound, abs(g))
    return ("NaN where golden is finite" if math.isnan(t) else "Inf where golden is finite"), 0.0
