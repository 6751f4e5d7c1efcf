"""What is kept of a tensor once it has been compared: maxima, places and counts, never the tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Disorder = Literal[
    "NaN missing", "NaN where golden is finite", "Inf missing", "Inf where golden is finite", "Inf of the wrong sign"
]  # fmt: skip
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element under three implementations."""

    index: Index
    golden: float
    reference: float
    target: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """NaN or Inf that is not where golden has it: the kind, how often, and the first place."""

    kind: Disorder
    count: int
    first: Element


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisSlices:
    """The fibres along one axis (design: law of slices), errors relative to each fibre's own scale.

    Attributes:
        axis: The axis along which the fibres run.
        length: Elements of a fibre.
        judged_share: Share of the fibres that can be judged.
        reference_quotient: Largest `max(0, reference error - f) / s` over judged fibres.
        target_quotient: Largest `max(0, target error - 2 f) / s` over judged fibres, without unit.
        worst: Index of that fibre, with -1 on `axis`.
        worst_error, worst_scale, worst_floor: Its target error, `s` and `f`, in the unit of the tensor.
    """

    axis: int
    length: int
    judged_share: float
    reference_quotient: float
    target_quotient: float
    worst: Index
    worst_error: float
    worst_scale: float
    worst_floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """Signed errors in ulps, each clipped: mean and standard error, signed by golden and plain.

    Attributes:
        count: Judged elements.
        distinct: Distinct values of `|golden|` among them, at most counted up to 64.
        outward, outward_error: Mean of `e * sign(golden)` and its standard error; negative is towards zero.
        upward, upward_error: Mean of `e` and its standard error.
        outward_by_rows, upward_by_rows: The same standard errors where rows are independent of each other, but not the
            elements of one; 0 where there are no rows.
    """

    count: int
    distinct: int
    outward: float
    outward_error: float
    upward: float
    upward_error: float
    outward_by_rows: float = 0.0
    upward_by_rows: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One tensor of one case, target and reference against golden; errors are maxima over judged elements.

    Attributes:
        tensor: `"out"`, `"out 1"`, `"grad x"`, or `"x"` for an argument that the op writes into.
        dtype: Element type of the target's tensor.
        judged: Elements where golden, reference and the rounded golden are finite.
        scale: `max|golden|` over judged elements.
        reference_error, target_error: `max|reference - golden|` and `max|target - golden|`.
        rounding_floor: `max|round(golden) - golden|`.
        held_error: `max|target - golden|` over the `held` elements where the reference alone is not finite.
        held_floor: `max ulp(golden)` over the same: one rounding, and the FP32 noise that may turn it the other way.
        overflow_gap: How far from the overflow bound an element is that one of target and rounded golden takes to
            Inf (or to the largest value) and the other does not; 0 where there is none. `overflow_at` is the place.
        misplaced: NaN and Inf that are not where golden has them.
        void: Gradient elements for which golden is NaN although every input is finite.
        alike: Elements where target and reference are alike not finite and golden is finite.
        unequal: For integers and booleans, the elements that differ; on a grid, those that are not its nearest number.
        grid: Whether it is a quantization, judged as numbers of its grid; `ties` of the unequal ones are ties.
        max_ulp, reference_max_ulp: Largest error in units of `ulp(golden)`; `max_ulp_at` is the place of the first.
        existing_excess: Largest `|target - golden| / (atol + rtol |golden|)` where a tolerance is declared.
        decoy, decoy_distance: The wrong answer nearest to golden (an input, another gradient), and how far it is.
        worst: The elements with the largest target error, worst first.
        digest: Digest of the target's bit pattern.
    """

    tensor: str
    dtype: str
    shape: Index
    judged: int
    scale: float = 0.0
    reference_error: float = 0.0
    target_error: float = 0.0
    rounding_floor: float = 0.0
    held_error: float = 0.0
    held_floor: float = 0.0
    held: int = 0
    overflow_gap: float = 0.0
    overflow_at: Element | None = None
    misplaced: tuple[Misplaced, ...] = ()
    void: int = 0
    alike: int = 0
    unequal: int = 0
    grid: bool = False
    ties: int = 0
    max_ulp: float = 0.0
    reference_max_ulp: float = 0.0
    max_ulp_at: Element | None = None
    existing_excess: float = 0.0
    decoy: str = ""
    decoy_distance: float = math.inf
    slices: tuple[AxisSlices, ...] = ()
    bias: Bias | None = None
    reference_bias: Bias | None = None
    worst: tuple[Element, ...] = ()
    digest: str = ""

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def exact(self) -> bool:
        """Whether the tensor holds integers or booleans, which are compared for equality."""
        return not self.dtype.startswith(("float", "bfloat"))
