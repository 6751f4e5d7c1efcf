"""Families of values: what each is called, which bug it is for, and which ops it is drawn for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from opcheck.core.facts import InputKind
from opcheck.core.policy import KINDS, Level

FLOAT: tuple[InputKind, ...] = ("float",)
DISCRETE: tuple[InputKind, ...] = ("integer", "boolean", "offsets")
REDUCING = ("reduction", "normalization", "contraction", "attention", "scan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One way to fill inputs; those of the other kinds are drawn as usual.

    Attributes:
        bug: The mistake that it is for, as a sentence.
        kinds: Kinds of op that get it.
        fills: Kinds of input that it fills; it is planned for ops that draw one of them.
        finite: Whether it holds only finite numbers.
        first_only: Whether it fills only the first floating-point tensor drawn: a single odd element or row in every
            tensor would hide itself.
        upstream: Whether upstream gradients are of the family too.
        quick: Whether it belongs to the quick level.
    """

    name: str
    bug: str
    kinds: tuple[str, ...] = KINDS
    fills: tuple[InputKind, ...] = FLOAT
    finite: bool = True
    first_only: bool = False
    upstream: bool = False
    quick: bool = False


FAMILIES: tuple[Family, ...] = (
    Family(name="normal", bug="Independent standard normals: the ordinary case.", quick=True),
    Family(
        name="large_mean", quick=True,
        bug="Mean 4, standard deviation 1: padded lanes that enter a mean or variance, one-pass variances.",
    ),
    Family(
        name="extreme_logits", quick=True, kinds=("normalization", "attention", "elementwise", "reduction"),
        bug="Normals times 300 (60 in narrow types of 5 exponent bits): an exp without the maximum subtracted.",
    ),
    Family(name="zeros", quick=True, bug="All zero: a division by a norm, a scale or a sum that may be 0."),
    Family(
        name="tail", quick=True, kinds=REDUCING, first_only=True,
        bug="All weight in the last element of each row: a last element that is lost, a tail mask that is one short.",
    ),
    Family(
        name="one_nan", quick=True, finite=False, first_only=True,
        bug="One NaN among normals: a maximum that drops NaN, a mask that hides it.",
    ),
    Family(
        name="uniform",
        bug="Between 0 and 1: sums that only grow, and formulas that are defined for positive inputs only.",
    ),
    Family(
        name="far_mean", kinds=("normalization", "reduction"), first_only=True,
        bug="Mean 1000 (256 in float16, 32 in bfloat16), standard deviation 1: one-pass variances, even in float32.",
    ),
    Family(
        name="near_constant", kinds=("normalization", "reduction"), first_only=True,
        bug="Rows of one number, give or take 1/256 (1/32 in bfloat16): a variance that cancels, and turns negative.",
    ),
    Family(
        name="constant_rows", kinds=("quantize",), first_only=True,
        bug="Each row is one number: a range of 0 to divide by.",
    ),
    Family(
        name="cancelling", kinds=("reduction", "contraction", "scan"),
        bug="Neighbours of magnitude 100 that sum to 1: a narrow accumulator, a narrow intermediate, tf32.",
    ),
    Family(
        name="masked", kinds=("normalization", "attention", "reduction"), finite=False, first_only=True,
        bug="-Inf in a whole row, in the first half of rows, in a last element: a running maximum that starts at -Inf.",
    ),
    Family(
        name="masked_finite", kinds=("normalization", "reduction"), first_only=True,
        bug="-1e10 (or the type's lowest) in the same places: a running maximum that starts at a finite number.",
    ),
    Family(
        name="outlier_row", first_only=True, kinds=("normalization", "reduction", "contraction", "scan", "gather"),
        bug="One row 1000 times as large: rows that leak into each other, and errors that hide behind the outlier.",
    ),
    Family(
        name="outlier_column", first_only=True,
        kinds=("normalization", "reduction", "contraction", "scan", "gather", "quantize"),
        bug="One column 1000 times as large, as activations have: small addends that a narrow sum swallows.",
    ),
    Family(
        name="tail_block", kinds=REDUCING, first_only=True,
        bug="All weight in the last eighth of each row: a last tile that is lost, or not rescaled.",
    ),
    Family(
        name="one_hot", kinds=(*REDUCING, "gather"), first_only=True,
        bug="A single 1 in each row: an offset, an order or a transposition that is off by one.",
    ),
    Family(
        name="small_integers", upstream=True,
        bug="Integers from -3 to 3, upstream too: exact sums admit no error, and equal maxima say which one wins.",
    ),
    Family(
        name="halfway", kinds=("elementwise",),
        bug="Products halfway between neighbours (the later tensors are 1.5): rounding half away from zero, or up.",
    ),
    Family(
        name="half_steps", kinds=("quantize",),
        bug="Halfway between integers (the later tensors are 1, the largest is 127): the same for a rounding to int8.",
    ),
    Family(
        name="half_steps_fp8", kinds=("quantize",),
        bug="Halfway between numbers of float8_e4m3fn (the later tensors are 1, the largest is 448): the same for fp8.",
    ),
    Family(
        name="near_overflow", kinds=("elementwise", "gather", "quantize"), first_only=True,
        bug="Around a fifth of the largest value (2^-14 of that beyond float16): an intermediate that overflows.",
    ),
    Family(
        name="subnormal", kinds=("elementwise", "normalization", "scan", "gather", "quantize"),
        bug="Below the smallest normal number: flushing to zero, and divisions by what is not quite 0.",
        first_only=True,
    ),
    Family(
        name="signed_zeros", kinds=("elementwise", "reduction"),
        bug="+0 and -0 among normals: a sign bit taken for less than 0, a gradient at a kink.",
    ),
    Family(
        name="saturating", kinds=("quantize",), first_only=True,
        bug="Normals times 1000: a cast that wraps instead of clamping.",
    ),
    Family(
        name="one_inf", finite=False, first_only=True,
        bug="One +Inf among normals: Inf that is dropped, spread or turned into NaN.",
    ),
    Family(
        name="one_negative_inf", finite=False, first_only=True,
        bug="One -Inf among normals: Inf - Inf, and a test for +Inf only.",
    ),
    Family(
        name="lowest", fills=DISCRETE,
        bug="Only the lowest index, all off, all in the last part: lost updates, a mean over nothing, a long part.",
    ),
    Family(
        name="highest", fills=DISCRETE,
        bug="Only the highest index, all on, all in the first part: a last entry out of bounds, a part that is cut.",
    ),
    Family(
        name="one_lowest", fills=DISCRETE[:2],
        bug="One lowest index, the others higher; one element off: an index 0 that is taken for padding.",
    ),
    Family(
        name="one_highest", fills=DISCRETE[:2],
        bug="One highest index, the others lower; one element on: a last entry that is taken to be out of bounds.",
    ),
    Family(name="ascending", fills=DISCRETE[:1], bug="In order: neighbours that meet in one entry, and race for it."),
    Family(name="descending", fills=DISCRETE[:1], bug="In reverse order: an order that is taken for granted."),
    Family(
        name="equal", fills=("integer", "offsets"),
        bug="One index everywhere, two long parts with empty ones between: lost updates, 0/0 of an empty part.",
    ),
    Family(
        name="alternating", fills=DISCRETE,
        bug="Lowest and highest in turn, off and on in turn, all in the middle part: an entry that comes back later.",
    ),
    Family(
        name="unit_parts", fills=DISCRETE[2:],
        bug="Parts of length 1, the rest in the last one: a loop that starts at the second element.",
    ),
)  # fmt: skip

_BY_NAME = {family.name: family for family in FAMILIES}


def family(name: str) -> Family | None:
    """Return the family of that name, None where there is none."""
    return _BY_NAME.get(name)


def families_for(
    kind: str,
    *,
    finite_only: bool,
    level: Level = "standard",
    draws: Collection[str] = FLOAT,
    beside: Collection[str] = (),
) -> tuple[Family, ...]:
    """Return the families that an op is audited with, the ordinary one first, then those of the quick level.

    Args:
        kind: The op's kind.
        finite_only: Whether NaN and Inf are outside of its contract.
        draws: Kinds of input that its samples draw.
        beside: Names of families that the op gets though its kind does not.
    """
    found = [
        item
        for item in FAMILIES
        if item.name == "normal"
        or (
            (kind in item.kinds or item.name in beside)
            and (item.finite or not finite_only)
            and (item.quick or level != "quick")
            and not set(item.fills).isdisjoint(draws)
        )
    ]
    return tuple(sorted(found, key=lambda item: not item.quick))
