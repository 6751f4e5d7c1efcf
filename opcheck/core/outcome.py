"""What a trial asks for, and what came back: an `Outcome` says whether the run came back, never whether it is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from opcheck.core.behaviour import (
    Autocast,
    Backwards,
    Behaviour,
    Changed,
    DoubleBackward,
    Refuse,
    Refused,
    SavedTensors,
    Watched,
)
from opcheck.core.building import Build, Built
from opcheck.core.composition import Composed
from opcheck.core.conditioning import Condition, Conditioned
from opcheck.core.depicted import Depict, Depicted
from opcheck.core.draws import Drawing, Draws
from opcheck.core.forms import Faked, FakeRun, Form
from opcheck.core.guards import Banded, Guarded
from opcheck.core.measured import Element, Measured
from opcheck.core.memory import Observe, Observed
from opcheck.core.oracle import Examine, Examined
from opcheck.core.pictures import Picture
from opcheck.core.sanitizer import Sanitize, Sanitized
from opcheck.core.stress import Endured, Stressed

Role = Literal["samples", "golden", "reference", "target"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """Run golden, reference and target once, forward and backward, and measure the three against each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """Run golden and reference on `count` sibling seeds, for what the reference's error is beyond one draw.

    Attributes:
        vanished: Gradients that are 0 in golden and not in the target: their size elsewhere is wanted.
    """

    count: int
    vanished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Redraw:
    """Run golden, reference and target on `count` sibling seeds and measure them: what holds for more than one draw."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Run the target `count` more times on the same inputs and keep each run's bit patterns."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Run one test of `torch.library.opcheck`; a nondeterministic op's runs may differ by rounding."""

    test: str
    nondeterministic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """Run the reference in FP32 in two legitimate orders of its declared reductions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locate:
    """Run the case once more and say where `tensor` is further than `threshold` from golden."""

    tensor: str
    threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise:
    """Judge each float32 or float64 element of an elementwise op by what the rounding of its own inputs explains."""

    max_ulp: float


_Behavioural = Draws | Refuse | SavedTensors | Backwards | DoubleBackward | Autocast | Composed | Stressed
_Numerical = Compare | Siblings | Redraw | Orders | Condition | Locate | Elementwise | Examine
_Watched = Observe | Guarded | Sanitize
Trial = _Numerical | Repeat | Registration | FakeRun | Build | Depict | _Watched | _Behavioural


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A tensor that is not of the form that the reference gives it: a sentence, and whose fault it is."""

    tensor: str
    problem: str
    role: Role = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Answer to `Compare`.

    Attributes:
        tensors: One measurement per output, mutated argument and gradient that has the right form.
        misfits: What has the wrong form or is missing.
        notes: What a reader must know about the run, for example a golden that was promoted.
        changed: Inputs, outputs and upstream gradients that the target wrote into though it must not.
        untouched: Arguments that the op declares to write into and did not.
        watched: How many tensors were watched for that.
        forms: The form of each output and gradient that the target gave.
    """

    tensors: tuple[Measured, ...]
    misfits: tuple[Misfit, ...] = ()
    notes: tuple[str, ...] = ()
    changed: tuple[Changed, ...] = ()
    untouched: tuple[str, ...] = ()
    watched: int = 0
    forms: tuple[Form, ...] = ()

    def find(self, tensor: str) -> Measured | None:
        """Return the measurement of a tensor, None where it has none."""
        return next((item for item in self.tensors if item.tensor == tensor), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleError:
    """How far the reference is from golden on one tensor, maxima over the draws of a trial.

    Attributes:
        judged: Elements compared, over all draws.
        scale: `max|golden|`.
        slices: For each axis with slices, the reference's worst quotient (see `AxisSlices`).
        random_scale: For a gradient under a constant or zero upstream gradient, `max|golden|` under a random one of
            equal magnitude on the same inputs; for one that is 0 whatever comes in, `max|golden|` of the representative
            case: what the errors of such a gradient are relative to.
    """

    tensor: str
    reference_error: float
    rounding_floor: float
    scale: float
    judged: int
    slices: Mapping[int, float] = field(default_factory=dict)
    random_scale: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleErrors:
    """Answer to `Siblings` (maxima over the seeds) and to `Orders` (maxima over the two orders)."""

    tensors: tuple[OracleError, ...]
    draws: int

    def find(self, tensor: str) -> OracleError | None:
        """Return the errors of a tensor, None where it has none."""
        return next((item for item in self.tensors if item.tensor == tensor), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrawn:
    """Answer to `Redraw`: the tensors of each draw."""

    draws: tuple[tuple[Measured, ...], ...]

    def of(self, tensor: str) -> tuple[Measured, ...]:
        """Return the measurements of a tensor, one per draw that has it."""
        return tuple(item for draw in self.draws for item in draw if item.tensor == tensor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """Answer to `Repeat`: for each run, the digest of each tensor's bit pattern, and what differed between the runs."""

    runs: tuple[tuple[tuple[str, str], ...], ...]
    varied: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """Answer to `Registration`: `failure` is empty where the test passes, else torch's own message."""

    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Answer to `Locate`: how many elements are beyond the threshold, and the sentence that says where."""

    wrong: int
    total: int
    where: str
    looks_like: str = ""
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementErrorsOf:
    """One tensor's answer to `Elementwise`.

    Attributes:
        wrong: Elements beyond both allowances.
        on_reference: Elements beyond the first allowance that the reference's own errors excuse.
        excess: Largest error over allowance.
        worst: That element.
    """

    tensor: str
    wrong: int
    on_reference: int
    excess: float
    worst: Element


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementErrors:
    """Answer to `Elementwise`."""

    tensors: tuple[ElementErrorsOf, ...]

    def find(self, tensor: str) -> ElementErrorsOf | None:
        """Return the answer for a tensor, None where it has none."""
        return next((item for item in self.tensors if item.tensor == tensor), None)


Evidence = (
    Compared
    | OracleErrors
    | Redrawn
    | Digests
    | Registered
    | Located
    | ElementErrors
    | Faked
    | Refused
    | Watched
    | Behaviour
    | Drawing
    | Conditioned
    | Depicted
    | Observed
    | Banded
    | Sanitized
    | Built
    | Endured
    | Examined
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The run came back with evidence."""

    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A role raised.

    Attributes:
        phase: `"forward"` or `"backward"`.
        error: Name of the exception's class; empty where `message` is a sentence of opcheck's own.
        where: Deepest line outside torch and opcheck.
    """

    role: Role
    phase: str
    error: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        if not self.error:
            return f"{self.where}: {self.message}" if self.where else self.message
        during = "" if self.role == "samples" else f" in its {self.phase}"
        place = f" at {self.where}" if self.where else ""
        return f"{self.role} raised {self.error}{during}{place}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The worker process died in a role: a signal, or an exit without an answer.

    Attributes:
        log: The end of its output.
        where: The user's line at which it died, where that is known.
    """

    role: Role
    reason: str
    log: str = ""
    where: str = ""

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        said = f"; its last words: {' '.join(self.log.split())[-400:]}" if self.log.strip() else ""
        return f"{self.role} {self.reason}{place}{said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """A role gave no answer in time; `where` is the user's line at which it then was, where that is known."""

    role: Role
    seconds: float
    where: str = ""

    def __str__(self) -> str:
        place = f"; it was at {self.where}" if self.where else ""
        return f"{self.role} gave no answer within {self.seconds:g} s{place}"


Outcome = Returned | Raised | Crashed | TimedOut
