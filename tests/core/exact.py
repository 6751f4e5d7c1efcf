"""The oracle of the floating-point tests: formats by hand, bit patterns decoded and rounding on exact rationals.

Nothing here uses opcheck, torch or a narrowing cast.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A binary interchange format: widths of its fields, and whether the top exponent is kept for Inf and NaN."""

    exponent_bits: int
    fraction_bits: int
    ieee: bool = True

    @property
    def bits(self):
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self):
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def e_min(self):
        return 1 - self.bias

    @property
    def largest(self):
        """The largest finite value, decoded from the pattern below Inf (IEEE) or below NaN (e4m3fn)."""
        top = (2**self.exponent_bits - 1) << self.fraction_bits
        return self.decode_finite(top - 1 if self.ieee else top + 2**self.fraction_bits - 2)

    def decode_finite(self, magnitude):
        """The value of a pattern without its sign bit, by the definition in IEEE 754 section 3.4."""
        field, fraction = divmod(magnitude, 2**self.fraction_bits)
        hidden = 2**self.fraction_bits if field else 0
        return Fraction(hidden + fraction) * Fraction(2) ** (max(field, 1) - self.bias - self.fraction_bits)

    def decode(self, pattern):
        """The value of a pattern as a Python float."""
        negative, magnitude = divmod(pattern, 2 ** (self.bits - 1))
        field, fraction = divmod(magnitude, 2**self.fraction_bits)
        if self.ieee and field == 2**self.exponent_bits - 1:
            value = math.nan if fraction else math.inf
        elif not self.ieee and magnitude == 2 ** (self.bits - 1) - 1:
            value = math.nan
        else:
            value = float(self.decode_finite(magnitude))
        return math.copysign(value, -1.0 if negative else 1.0)


LAYOUTS = {
    "float64": Layout(exponent_bits=11, fraction_bits=52),
    "float32": Layout(exponent_bits=8, fraction_bits=23),
    "float16": Layout(exponent_bits=5, fraction_bits=10),
    "bfloat16": Layout(exponent_bits=8, fraction_bits=7),
    "float8_e4m3fn": Layout(exponent_bits=4, fraction_bits=3, ieee=False),
    "float8_e5m2": Layout(exponent_bits=5, fraction_bits=2),
}
# Those small enough to try every pattern.
SMALL = tuple(name for name, layout in LAYOUTS.items() if layout.bits <= 16)


@cache
def all_values(name):
    """Every pattern's value, in the order of the patterns."""
    layout = LAYOUTS[name]
    return tuple(layout.decode(pattern) for pattern in range(2**layout.bits))


@cache
def finite_magnitudes(name):
    """Every finite value from 0 up. The last pattern bit of the value at index i is i's own."""
    layout = LAYOUTS[name]
    return tuple(value for value in all_values(name)[: 2 ** (layout.bits - 1)] if math.isfinite(value))


def floor_log2(x):
    """The floor of log2 of a positive rational, on integers."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def quantum(x, name):
    """The distance of neighbouring values of the format around a rational, as if its exponent were unbounded above."""
    layout = LAYOUTS[name]
    exponent = max(floor_log2(abs(x)), layout.e_min) if x else layout.e_min
    return Fraction(2) ** (exponent - layout.fraction_bits)


def nearest_even(g, name):
    """A float64 rounded once to the format. `round` of a Fraction is exact and takes ties to even."""
    if not math.isfinite(g) or g == 0:
        return g
    step = quantum(Fraction(g), name)
    rounded = round(Fraction(g) / step) * step
    magnitude = math.inf if abs(rounded) > LAYOUTS[name].largest else float(abs(rounded))
    return math.copysign(magnitude, g)
