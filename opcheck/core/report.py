"""The result of an audit as values, and as JSON: complete, stable, sorted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from opcheck.core.finding import Finding
from opcheck.core.kernel_coverage import KernelCoverage
from opcheck.core.verdict import Verdict, worst

SCHEMA = 1

StageName = Literal["basic correctness", "dtype sensitivity", "edge cases", "determinism", "stress"]
STAGES: tuple[str, ...] = get_args(StageName)
StageState = Literal["holds", "fails", "inconclusive", "not covered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRow:
    """One line of the protocol's table: worst-case figures of one tensor, absolute errors in the tensor's unit.

    Attributes:
        condition: Condition number of the element responsible, NaN where it was not needed.
        scale: `max|golden|` over the judged elements.
        decoy, decoy_distance: The wrong answer nearest to golden (an input, another gradient), and how far it is.
    """

    tensor: str
    dtype: str
    reference_error: float
    target_error: float
    reference_relative_error: float
    rounding_floor: float
    threshold: float
    protocol_threshold: float
    gate_valid: bool
    verdict: Verdict
    condition: float = math.nan
    scale: float = 0.0
    decoy: str = ""
    decoy_distance: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """One case: its tensors and every finding about it."""

    id: str
    verdict: Verdict
    tensors: tuple[TensorRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the possible pairs of options stood in a case."""

    covered: int
    possible: int

    def __str__(self) -> str:
        return f"{self.covered} of {self.possible}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of what a contract lets one combine was combined, by pairs.

    Attributes:
        pairs: For each two factors, such as `"dtype x values"`, the pairs of their options.
        estimated_seconds: What the plan was expected to take, in seconds of one core.
    """

    pairs: Mapping[str, Share] = field(default_factory=dict)
    estimated_seconds: float = 0.0

    @property
    def whole(self) -> Share:
        """All pairs together."""
        shares = self.pairs.values()
        return Share(covered=sum(item.covered for item in shares), possible=sum(item.possible for item in shares))

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {share}" for name, share in self.pairs.items() if share.possible)
        return f"pairs covered: {self.whole} ({parts})"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpReport:
    """One op: verdict, cases, and in words what limits the verdict and what it does not cover."""

    op: str
    verdict: Verdict
    backend: str
    cases: tuple[CaseReport, ...] = ()
    limitations: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    stages: Mapping[str, StageState] = field(default_factory=dict)
    formula: str = ""
    kind: str = ""
    place: str = ""
    problems: tuple[str, ...] = ()
    next: str = ""
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def production_ready(self) -> bool:
        """Whether all five stages hold."""
        return all(self.stages.get(stage) == "holds" for stage in STAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """A whole audit.

    Attributes:
        problems: What closes the gate beside the ops' verdicts: registered but not declared, a stale waiver ...
        complete: Whether every planned case ran.
        next: The command to run now; of an op, the one that runs its worst failing case again.
        kernels: What was reached of each kernel; None, and not in the JSON, where `--coverage` was not asked.
    """

    ops: tuple[OpReport, ...]
    verdict: Verdict
    exit_status: int
    environment: Mapping[str, str] = field(default_factory=dict)
    policy_digest: str = ""
    problems: tuple[str, ...] = ()
    complete: bool = True
    next: str = ""
    level: str = "standard"
    schema: int = SCHEMA
    kernels: tuple[KernelCoverage, ...] | None = None

    @property
    def ok(self) -> bool:
        """Whether it may ship."""
        return self.exit_status == 0


def verdict_of(findings: tuple[Finding, ...]) -> Verdict:
    """Return the worst verdict of findings; a waived one counts as a limitation."""
    return worst(Verdict.PASS_WITH_LIMITATIONS if item.waived and item.verdict is not Verdict.PASS else item.verdict
                 for item in findings)  # fmt: skip


def to_json(value: Any) -> Any:
    """Turn a report, or a part of it, into plain JSON values; non-finite numbers become strings, keys are sorted.

    A field that is None is left out.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = sorted(item.name for item in dataclasses.fields(value))
        return {name: to_json(part) for name in names if (part := getattr(value, name)) is not None}
    if isinstance(value, Verdict):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def finding_from(data: Mapping[str, Any]) -> Finding:
    """Read a finding back from JSON; the inverse of `to_json`."""
    numbers = {key: float(value) for key, value in data["numbers"].items()}
    missing = tuple(data["not_covered"])
    return Finding(**{**data, "verdict": Verdict(data["verdict"]), "numbers": numbers, "not_covered": missing})


def case_from(data: Mapping[str, Any]) -> CaseReport:
    """Read a case back from JSON; the inverse of `to_json`."""
    rows = tuple(_row_from(item) for item in data["tensors"])
    findings = tuple(finding_from(item) for item in data["findings"])
    return CaseReport(**{**data, "verdict": Verdict(data["verdict"]), "tensors": rows, "findings": findings})


def _row_from(data: Mapping[str, Any]) -> TensorRow:
    numeric = {item.name for item in dataclasses.fields(TensorRow) if item.type == "float"}
    values: dict[str, Any] = {key: float(value) if key in numeric else value for key, value in data.items()}
    return TensorRow(**{**values, "verdict": Verdict(data["verdict"])})
