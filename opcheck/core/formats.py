"""Binary floating-point formats as numbers: precision, range, unit roundoff. Imports no torch.

The formats are those of IEEE 754-2019, section 3.3; the two 8-bit ones follow the OCP 8-bit Floating Point
Specification, revision 1.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Describe a binary floating-point format.

    `precision` counts the significand's bits with the hidden one, `e_min` is the exponent of the smallest normal
    number, `max` the largest finite number and `bits` the width in storage.
    """

    name: str
    precision: int
    e_min: int
    max: float
    has_inf: bool
    bits: int

    @property
    def e_max(self) -> int:
        """Return the exponent of the largest finite number."""
        return math.frexp(self.max)[1] - 1

    @property
    def smallest_subnormal(self) -> float:
        """Return the smallest positive number, `2^(e_min - precision + 1)`."""
        return math.ldexp(1.0, self.e_min - self.precision + 1)

    @property
    def unit(self) -> float:
        """Return the unit roundoff `u = ulp(1) / 2 = 2^-precision`."""
        return math.ldexp(1.0, -self.precision)

    @property
    def wide(self) -> bool:
        """Say whether this is float32 or float64, whose rounding floor is too small to carry a tolerance alone."""
        return self.precision >= 24

    @property
    def overflow_bound(self) -> float:
        """Return the point halfway between `max` and the number that would follow it.

        All beyond it rounds past `max`. The point itself is a tie: it overflows where `max` has an odd significand,
        that is everywhere but in float8_e4m3fn, whose 464 rounds down to 448. In float64 the point is itself no
        float64, and Inf is returned.
        """
        return self.max + math.ldexp(1.0, self.e_max - self.precision)


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        fmt.name: fmt
        for fmt in (
            Format(name="float64", precision=53, e_min=-1022, max=(2 - 2.0**-52) * 2.0**1023, has_inf=True, bits=64),
            Format(name="float32", precision=24, e_min=-126, max=(2 - 2.0**-23) * 2.0**127, has_inf=True, bits=32),
            Format(name="float16", precision=11, e_min=-14, max=65504.0, has_inf=True, bits=16),
            Format(name="bfloat16", precision=8, e_min=-126, max=(2 - 2.0**-7) * 2.0**127, has_inf=True, bits=16),
            Format(name="float8_e4m3fn", precision=4, e_min=-6, max=448.0, has_inf=False, bits=8),
            Format(name="float8_e5m2", precision=3, e_min=-14, max=57344.0, has_inf=True, bits=8),
        )
    }
)


def format_of(dtype: torch.dtype | str) -> Format:
    """Return the format of a torch dtype or of its name, such as `torch.bfloat16` or `"bfloat16"`.

    Raise ValueError for any other dtype.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in FORMATS:
        raise ValueError(f"{dtype} is not a floating-point format that opcheck knows; it knows {', '.join(FORMATS)}")
    return FORMATS[name]


def ulp_scalar(g: float, fmt: Format) -> float:
    """Return the unit in the last place of `fmt` at one Python float, by the formula of `ulp`."""
    if not math.isfinite(g):
        return math.nan
    exponent = math.frexp(g)[1] - 1 if g else fmt.e_min
    return math.ldexp(1.0, max(exponent, fmt.e_min) - fmt.precision + 1)
