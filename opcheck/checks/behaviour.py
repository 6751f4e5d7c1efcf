"""What a tensor whose bits are not those of the ordinary run is worth: shared by the checks of behaviour."""

from __future__ import annotations

from opcheck.checks.gate import GateLimits, place, share, threshold_of
from opcheck.core.behaviour import Different
from opcheck.core.outcome import OracleError
from opcheck.core.verdict import Verdict


def judged(item: Different, errors: OracleError | None, limits: GateLimits) -> tuple[Verdict, str]:
    """Return the verdict of the gate and the figures.

    Args:
        errors: The reference's errors over sibling seeds, where they are known.
    """
    measured, when = item.measured, item.when
    of, _, _ = measured.tensor.rpartition(" of ")  # "grad x of grad y" is about the gradient of y
    if of:
        when = f"{when}, {measured.tensor}"
    said = f"{when}: " if when else ""
    if measured.exact or measured.misplaced or measured.unequal or not measured.judged:
        wrong = bool(measured.unequal or measured.misplaced)
        detail = "NaN, Inf, integers or numbers of a grid differ from golden's" if wrong else "as golden"
        return (Verdict.FAIL if wrong else Verdict.PASS), f"{said}{detail}"
    gate = threshold_of(measured, errors, limits)
    figures = f"{said}measured {measured.target_error:.1e}, allowed {gate.value:.1e} ({gate.parts})"
    if measured.target_error <= max(gate.value if gate.gate_valid else 0.0, gate.absolute_floor):
        return Verdict.PASS, figures
    if not gate.gate_valid:
        why = f"the reference itself is {share(gate.reference_relative_error)} of the scale from golden"
        return Verdict.PASS_WITH_LIMITATIONS, f"{said}not judged: {why}"
    worst = f", worst {place(measured.worst[0])}" if measured.worst else ""
    return Verdict.FAIL, figures + worst
