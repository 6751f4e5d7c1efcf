"""Other values of the constants, so that each stands beside its neighbours in the same table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from benchmarks.calibration.evidence import LAWS
from opcheck.checks import bias as bias_check
from opcheck.checks import slices as slices_check
from opcheck.core import bias, fibres, laws
from opcheck.core.policy import ByWidth
from opcheck.run import elements

STANDING = "standing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One alternative: limits that differ, or a constant of a module, and the laws that it is about.

    Attributes:
        remeasure: Whether the constant enters the measurement, and not only the judgement.
        wide: Whether it is about wide element types, narrow ones, or (None) both.
    """

    name: str
    laws: tuple[str, ...]
    limits: Mapping[str, Any] = field(default_factory=dict)
    constant: tuple[ModuleType, str, Any] | None = None
    remeasure: bool = False
    wide: bool | None = None

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Hold the constant at its other value for as long as the context lasts."""
        if self.constant is None:
            yield
            return
        module, name, value = self.constant
        before = getattr(module, name)
        setattr(module, name, value)
        try:
            yield
        finally:
            setattr(module, name, before)


def alternatives() -> tuple[Setting, ...]:
    """Return every constant of the laws at lower and at higher values."""
    return (*_limits(), *_judged(), *_measured())


def _limits() -> Iterator[Setting]:
    gate, k, means = LAWS["numerics"].limits, LAWS["slices"].limits, LAWS["bias"].limits
    numerics = ("numerics",)
    for value in (1.0, 1.5, 2.0, 3.0):
        given = {"numerics": gate(fudge_factor=ByWidth(narrow=value, wide=4.0))}
        yield Setting(name=f"fudge narrow {value:g}", laws=numerics, limits=given, wide=False)
    for value in (1.0, 2.0, 3.0, 4.0, 6.0):
        given = {"numerics": gate(fudge_factor=ByWidth(narrow=2.0, wide=value))}
        yield Setting(name=f"fudge wide {value:g}", laws=numerics, limits=given, wide=True)
    for value in (0.02, 0.05, 0.10, 0.25, 0.5):
        given = {"numerics": gate(max_reference_relative_error=value)}
        yield Setting(name=f"trigger {value:g}", laws=numerics, limits=given)
    for value in (1.0, 2.0, 3.0, 4.0, 6.0):
        given = {"slices": k(slice_factor=ByWidth(narrow=value, wide=16.0))}
        yield Setting(name=f"slice k narrow {value:g}", laws=("slices",), limits=given, wide=False)
    for value in (4.0, 8.0, 12.0, 16.0, 24.0):
        given = {"slices": k(slice_factor=ByWidth(narrow=4.0, wide=value))}
        yield Setting(name=f"slice k wide {value:g}", laws=("slices",), limits=given, wide=True)
    for value in (0.03, 0.0625, 0.125, 0.25):
        given = {"bias": means(max_bias=ByWidth(narrow=value, wide=8.0))}
        yield Setting(name=f"bias narrow {value:g}", laws=("bias",), limits=given, wide=False)
    for value in (1.0, 2.0, 4.0, 8.0, 16.0):
        given = {"bias": means(max_bias=ByWidth(narrow=0.125, wide=value))}
        yield Setting(name=f"bias wide {value:g}", laws=("bias",), limits=given, wide=True)
    for value in (1.0, 1.5, 2.0, 3.0, 4.0):
        yield Setting(name=f"ulp {value:g}", laws=("ulp",), limits={"ulp": LAWS["ulp"].limits(max_ulp=value)})


def _judged() -> Iterator[Setting]:
    both = ("numerics", "slices")
    for count in (0, 2, 4, 8, 16):
        yield Setting(name=f"siblings {count}", laws=both, constant=(laws, "SIBLING_SEEDS", count))
    for count in (1, 16, 64, 256, 10**9):
        yield Setting(name=f"few elements {count}", laws=both, constant=(laws, "FEW_ELEMENTS", count))
    for ulps in (0.0, 1.0, 2.0, 4.0):
        yield Setting(
            name=f"wide floor {ulps:g}", laws=("numerics",), constant=(laws, "WIDE_FLOOR_ULPS", ulps), wide=True
        )
    for share in (0.1, 0.5, 0.9):
        yield Setting(name=f"slice share {share:g}", laws=("slices",), constant=(slices_check, "FEWEST_JUDGED", share))
    for units in (0.0, 1.0, 4.0, 16.0):
        yield Setting(
            name=f"slice least {units:g}", laws=("slices",), constant=(slices_check, "LEAST_WIDE_QUOTIENT", units),
            wide=True,
        )  # fmt: skip
    for errors in (0.0, 3.0, 6.0, 9.0):
        yield Setting(name=f"bias z {errors:g}", laws=("bias",), constant=(bias_check, "SIGNIFICANT", errors))


def _measured() -> Iterator[Setting]:
    rows: tuple[tuple[str, str, ModuleType, str, tuple[Any, ...]], ...] = (
        ("slice scale", "slices", fibres, "SMALLEST_SCALE", (2.0**-6, 2.0**-12, 2.0**-18)),
        ("slice trigger", "slices", fibres, "TRIGGER", (0.03, 0.10, 0.30)),
        ("slice shortest", "slices", fibres, "SHORTEST", (8, 32, 128)),
        ("bias fewest", "bias", bias, "FEWEST", (64, 256, 1024)),
        ("bias distinct", "bias", bias, "DISTINCT", (8, 64)),
        ("bias clip x", "bias", bias, "CLIP", (2, 4, 16)),
        ("ulp neighbours", "ulp", elements, "NEIGHBOURS", (32, 256, 2048)),
        ("ulp E x", "ulp", elements, "ON_REFERENCE", (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)),
        ("ulp narrow noise", "ulp", elements, "NARROW_NOISE", (0.0, 2.0**-24, 2.0**-22, 2.0**-20)),
    )
    for name, law, module, constant, values in rows:
        for value in values:
            other = {"narrow": 0.125 * value, "wide": 8.0 * value} if constant == "CLIP" else value
            widths = {"NARROW_NOISE": False, "NEIGHBOURS": True, "ON_REFERENCE": True}
            yield Setting(
                name=f"{name} {value:g}", laws=(law,), constant=(module, constant, other), remeasure=True,
                wide=widths.get(constant),
            )  # fmt: skip
