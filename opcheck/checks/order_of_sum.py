"""What `numerics` says of a sum beyond the gate whose terms are known: is it the order in which they are added up?"""

from __future__ import annotations

from opcheck.checks.protocol import Seen, Subject, answered
from opcheck.checks.without_gate import condition_of
from opcheck.core.conditioning import Conditioned, excused_by_order
from opcheck.core.laws import Threshold
from opcheck.core.measured import Measured
from opcheck.core.outcome import Locate, Trial
from opcheck.core.variants import programs_of


def wanted_beyond(item: Measured, gate: Threshold, subject: Subject, seen: Seen) -> tuple[Trial, ...]:
    """Return the trials that tell why a tensor is beyond the gate: where it is, unless an order of its sum explains it.

    The author has given the terms of some outputs; which order the target adds them up in is its own affair.
    """
    trial = condition_of(item, gate)
    if _may_be_order(item, subject) and trial not in seen:
        return (trial,)
    return () if order_explains(item, gate, subject, seen) else (Locate(tensor=item.tensor, threshold=gate.value),)


def order_explains(item: Measured, gate: Threshold, subject: Subject, seen: Seen) -> str:
    """Return the sentence where an order of summation explains the target's errors over many seeds, else nothing."""
    found = answered(seen, condition_of(item, gate)) if _may_be_order(item, subject) else None
    return excused_by_order(found) if isinstance(found, Conditioned) else ""


def _may_be_order(item: Measured, subject: Subject) -> bool:
    return subject.terms and not item.tensor.startswith("grad ") and programs_of(subject.case.variant) is None
