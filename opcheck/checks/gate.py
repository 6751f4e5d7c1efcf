"""What numerics, structure and their neighbours share: the threshold of a tensor from the evidence seen so far."""

from __future__ import annotations

from dataclasses import dataclass

from opcheck.checks.protocol import Seen, answered
from opcheck.core.case import Case
from opcheck.core.formats import format_of
from opcheck.core.laws import Threshold, siblings_needed, threshold, vanishes
from opcheck.core.layouts import revalues_gradient
from opcheck.core.measured import Element, Measured
from opcheck.core.outcome import Compared, OracleError, OracleErrors, Siblings
from opcheck.core.policy import ByWidth, limit


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """Limits of the reference-relative gate."""

    fudge_factor: ByWidth = limit(
        ByWidth(narrow=2.0, wide=4.0), "Times the reference's error that the target's may be; without unit."
    )
    project_atol: float = limit(0.0, "Absolute error accepted everywhere, in the unit of the tensor.")
    max_reference_relative_error: float = limit(
        0.10, "Reference error over scale above which the gate says nothing; without unit.", loose="neither"
    )


def siblings_for(evidence: Compared, case: Case) -> Siblings | None:
    """Return the sibling seeds that the neediest tensor of a case asks for, at least one for a constant gradient."""
    judged = [item for item in evidence.tensors if not item.exact]
    needed = max((siblings_needed(item) for item in judged), default=0)
    count = max(needed, int(revalues_gradient(case.layouts)))
    vanished = tuple(item.tensor for item in judged if vanishes(item))
    return Siblings(count=count, vanished=vanished) if count else None


def sibling_errors(seen: Seen, evidence: Compared, case: Case, tensor: str) -> OracleError | None:
    """Return a tensor's errors over the sibling seeds, None where none were drawn."""
    trial = siblings_for(evidence, case)
    drawn = answered(seen, trial) if trial is not None else None
    return drawn.find(tensor) if isinstance(drawn, OracleErrors) else None


def threshold_of(measured: Measured, siblings: OracleError | None, limits: GateLimits) -> Threshold:
    """Return the threshold of a tensor under its limits."""
    return threshold(
        measured,
        siblings,
        format_of(measured.dtype),
        fudge_factor=limits.fudge_factor.of(measured.dtype),
        project_atol=limits.project_atol,
        trigger=max(limits.max_reference_relative_error, 0.25 if measured.dtype == "float8_e5m2" else 0.0),
    )


def place(element: Element) -> str:
    """Say where an element is and what the three runs gave there."""
    index = ", ".join(map(str, element.index))
    return (
        f"at [{index}]: golden {number(element.golden)}, reference {number(element.reference)}, "
        f"target {number(element.target)}"
    )


def share(ratio: float) -> str:
    """Write a ratio as a percentage, or as far beyond one."""
    return f"{ratio:.0%}" if ratio <= 10 else "more than 1000%"


def number(value: float) -> str:
    """Write a number shortly, and integers as such."""
    return str(int(value)) if value == value and abs(value) < 1e15 and value == int(value) else f"{value:.6g}"
