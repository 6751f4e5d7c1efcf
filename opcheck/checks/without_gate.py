"""What `numerics` says of a tensor whose reference is too far from golden to gate by."""

from __future__ import annotations

from opcheck.checks.gate import share
from opcheck.checks.protocol import Seen, answered, broken
from opcheck.core.case import Case
from opcheck.core.conditioning import Condition, Conditioned, decide, described
from opcheck.core.laws import Threshold
from opcheck.core.measured import Measured
from opcheck.core.outcome import OracleErrors, Orders, Trial
from opcheck.core.pictures import Picture
from opcheck.core.variants import programs_of
from opcheck.core.verdict import Verdict

FEWEST_SEEDS, MOST_SEEDS = 16, 64  # the error of a mean is taken between seeds; 64 samples of each tensor at least


def condition_of(item: Measured, gate: Threshold) -> Condition:
    """Return the trial that looks into a tensor."""
    seeds = MOST_SEEDS if item.judged < MOST_SEEDS else FEWEST_SEEDS
    return Condition(tensor=item.tensor, seeds=seeds, beyond=gate.fudge_factor)


def wanted_without_gate(item: Measured, gate: Threshold, case: Case) -> tuple[Trial, ...]:
    """Return the trials by which a tensor is judged without the gate.

    None where a sample of the programs ran: over all seeds, all of them would take the interpreter minutes.
    """
    return () if programs_of(case.variant) is not None else (Orders(), condition_of(item, gate))


def judged_without_gate(item: Measured, gate: Threshold, case: Case, seen: Seen) -> tuple[Verdict, str]:
    """Judge a tensor by its errors over many seeds, and say what was measured."""
    why = f"the reference itself is {share(gate.reference_relative_error)} of the scale from golden"
    if programs_of(case.variant) is not None:
        return _judged_sample(item, gate, why)
    orders = answered(seen, Orders())
    spread = orders.find(item.tensor) if isinstance(orders, OracleErrors) else None
    figures = f"measured {item.target_error:.1e}"
    if spread is not None and spread.judged:
        allowed = gate.fudge_factor * spread.reference_error + gate.absolute_floor
        figures += f", two FP32 orders of the reference allow {allowed:.1e}"
    trial = condition_of(item, gate)
    found = answered(seen, trial)
    if not isinstance(found, Conditioned):
        lost = broken(seen, trial)
        return Verdict.INCONCLUSIVE, f"{why}; {figures}; {lost or 'nothing else was measured'}"
    verdict, sentence = decide(found, most_rms=trial.beyond)
    return verdict, "; ".join(filter(None, (why, sentence, described(found), figures)))


def _judged_sample(item: Measured, gate: Threshold, why: str) -> tuple[Verdict, str]:
    few = f"{why}, and of so large a grid too few programs run to know the errors over many seeds"
    figures = f"measured {item.target_error:.1e}, {gate.value:.1e} as the reference's own error has it"
    if item.target_error <= gate.value:
        return Verdict.PASS_WITH_LIMITATIONS, f"{few}; the target is no further from golden; {figures}"
    return Verdict.INCONCLUSIVE, f"{few}; {figures}"


def condition_number(item: Measured, gate: Threshold, seen: Seen) -> dict[str, float]:
    """Return the condition number for the table, nothing where it was not needed."""
    found = answered(seen, condition_of(item, gate))
    return {"condition": found.kappa.value} if isinstance(found, Conditioned) else {}


def pictures_without_gate(item: Measured, gate: Threshold, seen: Seen) -> tuple[Picture, ...]:
    """Return the pictures of a tensor that was judged without the gate."""
    found = answered(seen, condition_of(item, gate))
    return found.every_picture if isinstance(found, Conditioned) else ()
