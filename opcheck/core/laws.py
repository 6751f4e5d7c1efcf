"""The numbers that are law: thresholds from the reference's own error, and when they mean nothing.

Sources: the three-way comparison and its reference-relative gate are the published protocol (fudge factor 2, rounding
floor); what differs for wide element types and small tensors is explained in `docs/numerics.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from opcheck.core.formats import Format, format_of, ulp_scalar
from opcheck.core.measured import Measured
from opcheck.core.outcome import OracleError
from opcheck.core.policy import WIDE

FEW_ELEMENTS = 64  # below this many judged elements one draw of the reference's noise says too little
SIBLING_SEEDS = 8
MOST_SIBLINGS = 64
MANY_ELEMENTS = 1 << 20  # the maximum over so many is steady from draw to draw
WIDE_FLOOR_ULPS = 2.0  # of the scale: what any float32 result may be off by, however lucky the reference was
CANCELLED_ROUNDINGS = 16.0  # of the terms of a gradient that cancels, under a constant upstream gradient or always
NOTHING = 2.0**-150  # half of the least float32: what is not above it rounds to 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """How far the target may be from golden on one tensor, with its parts, all in the unit of the tensor.

    Attributes:
        value: `fudge_factor * reference_error + absolute_floor`.
        protocol: The published protocol's verbatim figure, `2 * reference_error + max(project_atol, rounding_floor)`,
            from this case alone.
        reference_relative_error: `reference_error / max(scale, absolute_floor)`, without unit; 0 where both are 0.
        gate_valid: Whether `reference_relative_error` is at most the trigger.
    """

    value: float
    fudge_factor: float
    reference_error: float
    rounding_floor: float
    absolute_floor: float
    protocol: float
    reference_relative_error: float
    gate_valid: bool
    scale: float

    @property
    def parts(self) -> str:
        """The sum in words: `2 x 2.0e-04 + 3.1e-05`."""
        return f"{self.fudge_factor:g} x {self.reference_error:.1e} + {self.absolute_floor:.1e}"


def siblings_needed(measured: Measured) -> int:
    """Say how many sibling seeds the reference's error is to be taken over; 0 where one draw is enough.

    Wide types compare two draws of rounding noise of the same size, and few elements give few draws: equally good
    float32 sums would fail 21 % of the time at 1 element. Of a narrow type with many elements one draw mostly says
    enough; where the target is beyond it, the reference may have been lucky (a gradient that nearly cancels), and only
    then the siblings are asked: they can raise a threshold, never lower it.
    """
    if measured.judged == 0:
        return 0
    if measured.dtype not in WIDE and measured.judged >= FEW_ELEMENTS and not _beyond_one_draw(measured):
        return 0
    if measured.judged >= MANY_ELEMENTS:
        return 1
    return min(MOST_SIBLINGS, max(SIBLING_SEEDS, -(-FEW_ELEMENTS // measured.judged)))


def vanishes(measured: Measured) -> bool:
    """Say whether a gradient is 0 whatever comes in, and the target's is not: the rounding of terms that cancel.

    0 is what float32 holds as such; of a gradient that is only small all digits are asked.
    """
    return measured.tensor.startswith("grad ") and measured.scale <= NOTHING and measured.target_error > 0.0


def _beyond_one_draw(measured: Measured) -> bool:
    """Say whether the target is further off than one draw of the reference explains, in all or in a slice."""
    allowed = 2.0 * measured.reference_error + measured.rounding_floor
    slices = any(axis.target_quotient > axis.reference_quotient for axis in measured.slices)
    return measured.target_error > allowed or slices


def threshold(
    measured: Measured,
    siblings: OracleError | None,
    fmt: Format,
    *,
    fudge_factor: float,
    project_atol: float,
    trigger: float,
) -> Threshold:
    """Return the threshold of one tensor.

    Args:
        measured: The case's own measurement.
        siblings: Maxima over sibling seeds, None where none were drawn.
        fmt: The tensor's number format.
        fudge_factor: Times the reference's error that the target's may be.
        project_atol: Absolute error that the project accepts everywhere, in the unit of the tensor.
        trigger: Reference-relative error above which the gate is invalid.
    """
    reference_error, floor, scale = measured.reference_error, measured.rounding_floor, measured.scale
    protocol = 2.0 * reference_error + max(project_atol, floor)
    if siblings is not None:
        reference_error = max(reference_error, siblings.reference_error)
        floor = max(floor, siblings.rounding_floor)
        scale = max(scale, siblings.scale)
    # Backward is linear in the upstream gradient: a constant one may cancel to nothing, its errors do not.
    random_scale = siblings.random_scale if siblings is not None else 0.0
    least_sum = min(fmt.unit, format_of("float32").unit) * random_scale  # narrow types are summed in FP32
    wide_floor = WIDE_FLOOR_ULPS * ulp_scalar(scale, fmt) if fmt.wide else 0.0
    absolute_floor = max(project_atol, floor, wide_floor, CANCELLED_ROUNDINGS * least_sum)
    unit = max(scale, absolute_floor, random_scale)
    relative = 0.0 if not reference_error else reference_error / unit if unit else math.inf
    return Threshold(
        value=fudge_factor * reference_error + absolute_floor,
        fudge_factor=fudge_factor,
        reference_error=reference_error,
        rounding_floor=floor,
        absolute_floor=absolute_floor,
        protocol=protocol,
        reference_relative_error=relative,
        gate_valid=relative <= trigger,
        scale=scale,
    )
