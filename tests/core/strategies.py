"""Hypothesis strategies for numbers at which rounding goes wrong. Every strategy gives Python floats."""

import math

from hypothesis import strategies as st

from opcheck.core.floats import FORMATS, Format

NARROWER_THAN_FLOAT64 = tuple(fmt for fmt in FORMATS.values() if fmt.name != "float64")


def formats():
    """Draw one of the known formats."""
    return st.sampled_from(tuple(FORMATS.values()))


def signed(magnitudes):
    """Give each drawn magnitude either sign, zero included."""
    return st.builds(math.copysign, magnitudes, st.sampled_from((1.0, -1.0)))


def magnitudes_in(fmt: Format):
    """Draw finite magnitudes of `fmt`, zero included; subnormals as often as normal numbers."""
    top = 2**fmt.precision
    quantum = fmt.e_min - fmt.precision + 1
    subnormal = st.integers(0, top // 2 - 1).map(lambda k: math.ldexp(k, quantum))
    normal = st.builds(math.ldexp, st.integers(top // 2, top - 1), st.integers(quantum, fmt.e_max - fmt.precision + 1))
    return st.one_of(subnormal, normal).map(lambda value: min(value, fmt.max))


def finite_in(fmt: Format):
    """Draw finite numbers of `fmt`, of either sign, subnormals and signed zeros included."""
    return signed(magnitudes_in(fmt))


def near_ties(fmt: Format):
    """Draw float64 numbers at or within 2 float64 steps of the midpoint of two neighbours in `fmt`.

    The midpoint above `fmt.max` is among them. float64 has no such numbers: its midpoints are not float64 themselves.
    """
    if fmt.name == "float64":
        raise ValueError("the midpoint of two float64 neighbours is not a float64")

    def midpoint(low: float) -> float:
        exponent = max(math.frexp(low)[1] - 1, fmt.e_min) if low else fmt.e_min
        return low + math.ldexp(1.0, exponent - fmt.precision)

    return signed(st.builds(_stepped, magnitudes_in(fmt).map(midpoint), st.integers(-2, 2)))


def binade_edges(fmt: Format):
    """Draw float64 numbers within 2 float64 steps of a power of two, `fmt.max` or the overflow bound.

    The powers reach from half the smallest subnormal to the first above `fmt.max`.
    """
    powers = st.integers(fmt.e_min - fmt.precision, min(fmt.e_max + 1, 1023)).map(lambda e: math.ldexp(1.0, e))
    limits = st.sampled_from([limit for limit in (fmt.max, fmt.overflow_bound) if math.isfinite(limit)])
    return signed(st.builds(_stepped, st.one_of(powers, limits), st.integers(-2, 2)))


def doubles(fmt: Format):
    """Draw any float64, NaN and Inf included; those hard to round to `fmt` far more often than by chance."""
    hard = [finite_in(fmt), binade_edges(fmt)]
    if fmt.name != "float64":
        hard.append(near_ties(fmt))
    return st.one_of(st.floats(), *hard)


def _stepped(value: float, steps: int) -> float:
    """Move a magnitude by whole float64 steps, not below 0."""
    for _ in range(abs(steps)):
        value = math.nextafter(value, math.inf if steps > 0 else 0.0)
    return value
