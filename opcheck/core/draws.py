"""Trial and evidence about ops that draw random numbers: target and reference over the same seeds."""

from __future__ import annotations

from dataclasses import dataclass, field

from opcheck.core.measured import Element, Index

RANDOMNESS = "randomness"  # the check of ops that are declared random


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Run target and reference under `runs` seeds, and the target again under the first one.

    Attributes:
        max_ulp: How far a kept value may be from the reference's, in units in its last place.
    """

    runs: int
    max_ulp: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """How much of a tensor changes from one draw to the next.

    Attributes:
        target: Elements of the target that changed, over all draws.
        reference: Changes of the reference, those of elements that always change together counted once.
        always: Whether each of the reference's elements changed in every draw, as continuous numbers do.
    """

    target: int = 0
    reference: int = 0
    always: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How many elements are not zero in each run.

    Attributes:
        target, reference: Counts, one for each seed.
        eligible: Elements that were not zero in at least one run of either.
        fixed: Whether the reference is the same under every seed.
    """

    target: tuple[int, ...] = ()
    reference: tuple[int, ...] = ()
    eligible: int = 0
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What elements are where they are not zero, in target and reference.

    Attributes:
        steady: Whether the reference's own runs agree wherever two of them are not zero.
        agreeing: How often one of its values was seen again.
        compared: Elements of which both gave such a value.
        excess: Largest difference over what is allowed for its element, at `worst`.
        ratio: Median of target over reference where both are finite and the reference is not zero; NaN without any.
    """

    steady: bool = True
    agreeing: int = 0
    compared: int = 0
    excess: float = 0.0
    worst: Element | None = None
    ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One tensor under all seeds.

    Attributes:
        unequal: Repeats of the target under its first seed whose bits were others.
        in_a_row: Changes from one call to the next without a new seed.
        across: Changes from one seed to the next.
        nan: Elements that are NaN in a run of the target though no input and nothing of the reference is.
        nan_at: The first of them.
    """

    tensor: str
    dtype: str
    numel: int
    unequal: int = 0
    in_a_row: Changes = field(default_factory=Changes)
    across: Changes = field(default_factory=Changes)
    kept: Kept = field(default_factory=Kept)
    values: Values = field(default_factory=Values)
    nan: int = 0
    nan_at: Index = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """An output and a gradient of its shape, where input and upstream gradient are not zero, over all seeds.

    Attributes:
        dropped, kept: Elements of the reference that are zero, and not zero, in both.
        reference: Elements of the reference that are zero in one of them only.
        forward, backward: Elements of the target that are zero in the output only, and in the gradient only.
        total: Elements looked at.
        first: The first element of the target that is zero in one of them only.
    """

    output: str
    gradient: str
    dropped: int = 0
    kept: int = 0
    reference: int = 0
    forward: int = 0
    backward: int = 0
    total: int = 0
    first: Index = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Answer to `Draws`.

    Attributes:
        repeats: How often the target was run again under its first seed; `varied` says what differed in them.
    """

    tensors: tuple[Drawn, ...]
    ties: tuple[Tie, ...] = ()
    repeats: int = 0
    varied: str = ""
