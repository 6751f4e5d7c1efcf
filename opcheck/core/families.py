"""Families of values: what each is called, which bug it is for, and which kinds of op it is drawn for."""

from __future__ import annotations

from dataclasses import dataclass

from opcheck.core.policy import KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One way to fill the floating-point inputs.

    Attributes:
        bug: The mistake that it is for, as a sentence.
        kinds: Kinds of op that get it.
        finite: Whether it holds only finite numbers.
    """

    name: str
    bug: str
    kinds: tuple[str, ...] = KINDS
    finite: bool = True


FAMILIES: tuple[Family, ...] = (
    Family(name="normal", bug="Independent standard normals: the ordinary case."),
    Family(
        name="large_mean",
        bug="Mean 4, standard deviation 1: padded lanes that enter a mean or variance, one-pass variances.",
    ),
    Family(
        name="extreme_logits",
        bug="Normals times 300 (60 in narrow types of 5 exponent bits): an exp without the maximum subtracted.",
        kinds=("normalization", "attention", "elementwise", "reduction"),
    ),
    Family(name="zeros", bug="All zero: a division by a norm, a scale or a sum that may be 0."),
    Family(
        name="masked",
        bug="A whole row of -inf, then rows whose first half is -inf: a running maximum that starts at -inf.",
        kinds=("normalization", "attention", "reduction"),
        finite=False,
    ),
    Family(name="one_inf", bug="One +Inf among normals: Inf that is dropped, spread or turned into NaN.", finite=False),
    Family(name="one_nan", bug="One NaN among normals: a maximum that drops NaN, a mask that hides it.", finite=False),
)

_BY_NAME = {family.name: family for family in FAMILIES}


def family(name: str) -> Family | None:
    """Return the family of that name, None where there is none."""
    return _BY_NAME.get(name)


def families_for(kind: str, *, finite_only: bool) -> tuple[Family, ...]:
    """Return the families that a kind of op is audited with, the ordinary one first."""
    return tuple(item for item in FAMILIES if kind in item.kinds and (item.finite or not finite_only))
