"""What a check is, what it is asked about, and the proof that it carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from opcheck.core.behaviour import REFUSAL
from opcheck.core.case import Case, Dims
from opcheck.core.draws import RANDOMNESS
from opcheck.core.finding import Finding
from opcheck.core.outcome import Compare, Compared, Crashed, Evidence, Outcome, Raised, Returned, TimedOut, Trial
from opcheck.core.outside import outside
from opcheck.core.policy import Contract, Level
from opcheck.core.sampling import CHECKS as SAMPLED_CHECKS
from opcheck.core.sanitizer import Sanitize
from opcheck.core.variants import programs_of
from opcheck.core.verdict import Verdict

Seen = Mapping[Trial, Outcome]
LimitsOf = Callable[[str], Any]  # a check's limits for an element type


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a check is asked about: one case of one op, and how hard to look.

    Attributes:
        representative: Whether this is the case of its dtype on which the costly checks run.
        mutated: Arguments that the op writes into; such an op has no backward.
        terms: Whether the author gives the terms that some outputs are sums of.
        registered: Whether there is a torch.library op to test, and not only a callable.
        fake: Whether the op is to run on fake tensors; an adopted one without a fake is not.
        sanitizers: The sanitizers' runs that were asked for.
    """

    contract: Contract
    case: Case
    level: Level = "standard"
    representative: bool = False
    mutated: tuple[str, ...] = ()
    terms: bool = False
    registered: bool = True
    fake: bool = True
    sanitizers: tuple[Sanitize, ...] = ()


class Check(Protocol):
    """A law with its evidence: pure, so that evidence in gives findings out."""

    @property
    def name(self) -> str:
        """Key in registry.toml, in `--check` and in reports."""

    @property
    def law(self) -> str:
        """One sentence in the indicative: what must hold."""

    @property
    def requires(self) -> frozenset[str]:
        """Checks that must hold for a tensor before this one says anything about it."""

    @property
    def limits(self) -> type:
        """Frozen dataclass of numbers; its fields are the TOML keys."""

    def applies(self, subject: Subject) -> str:
        """Return `""`, or the reason why the check has nothing to say here."""

    def plan(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Trial, ...]:
        """Return the trials that the check needs, given what was seen; those already seen are not run again."""

    def judge(self, subject: Subject, seen: Seen, limits: LimitsOf) -> tuple[Finding, ...]:
        """Return a finding for each tensor that the check can speak about."""

    def controls(self) -> tuple[Control, ...]:
        """Return evidence on which the check must hold and evidence on which it must not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A proof that a check can tell right from wrong: evidence, and the verdict that it must give."""

    name: str
    expect: Verdict
    seen: Seen
    subject: Subject
    limits: Mapping[str, Any] = field(default_factory=dict)


def answered(seen: Seen, trial: Trial) -> Evidence | None:
    """Return the evidence of a trial that came back, None where it did not or was not run."""
    outcome = seen.get(trial)
    return outcome.evidence if isinstance(outcome, Returned) else None


def compared(seen: Seen) -> Compared | None:
    """Return the three-way comparison, None where it did not come back."""
    evidence = answered(seen, Compare())
    return evidence if isinstance(evidence, Compared) else None


def broken(seen: Seen, trial: Trial) -> Raised | Crashed | TimedOut | None:
    """Return how a trial failed to come back, None where it came back or was not run."""
    outcome = seen.get(trial)
    return None if outcome is None or isinstance(outcome, Returned) else outcome


def against_golden(subject: Subject) -> str:
    """Return why no value of an op can be compared with golden's one to one, empty where it can."""
    return f"the op is declared random: the check {RANDOMNESS} judges its values" if subject.contract.random else ""


def inapplicable(check: Check, subject: Subject) -> str:
    """Return why a check has nothing to say, `""` where it has; outside of the contract only refusals are judged."""
    if check.name != REFUSAL and outside(subject.contract, subject.case):
        return "the case is outside of the contract: it must be refused"
    if check.name not in SAMPLED_CHECKS and programs_of(subject.case.variant) is not None:
        return f"a sample of the programs is judged by {', '.join(SAMPLED_CHECKS)}"
    return check.applies(subject)


def example(kind: Any = "normalization", dtype: str = "float32", level: Level = "standard", **dims: int) -> Subject:
    """Return a subject for controls."""
    contract = Contract(name="ops::example", kind=kind, dtypes=(dtype,), dims=("rows", "cols"), reduces=("cols",))
    case = Case(op="ops::example", dtype=dtype, dims=Dims(dims or {"rows": 3, "cols": 129}))
    return Subject(contract=contract, case=case, level=level, representative=True)
