"""Trials and evidence about how an op behaves beside its numbers: what it leaves alone, refuses and repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opcheck.core.measured import Index, Measured

if TYPE_CHECKING:
    from opcheck.core.outcome import OracleError

REFUSAL = "refusal"  # the check of cases outside of the contract, and the label under which they are announced
AutocastType = Literal["bfloat16", "float16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Run the target on a case outside of its contract, in the expectation that it raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTensors:
    """Run the target forward and backward, and watch what autograd saved for it in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backwards:
    """Go backward twice through one graph, and with only some of the inputs requiring a gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleBackward:
    """Differentiate each gradient again, by every input and upstream gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autocast:
    """Run the forward under autocast to an element type, and the backward outside of it, as users do."""

    dtype: AutocastType


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Answer to `Refuse`.

    Attributes:
        error: What the target raised, empty where it returned.
        returned: What it gave instead, in words.
        vacuous: Why the case shows nothing, for example that its tensors are contiguous all the same.
    """

    error: str = ""
    returned: str = ""
    vacuous: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A tensor that a run was to leave alone and did not.

    Attributes:
        count: Elements that changed; where `index` is empty although the tensor has dimensions, bytes around it.
        index: The first of them, None where only memory around the tensor changed.
        place: Where in the memory around it, in elements from its first one.
        before, after: The first element's values.
    """

    tensor: str
    count: int
    total: int
    index: Index | None
    place: int = 0
    before: float = 0.0
    after: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Answer to `SavedTensors`: how many tensors were watched, and which changed."""

    count: int
    changed: tuple[Changed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong whatever the numbers are: the tensor, the circumstances and a sentence."""

    tensor: str
    when: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Different:
    """A tensor whose bits are not those of the ordinary run, and that the gate must therefore judge.

    Attributes:
        when: The circumstances, such as `only x requires grad`.
        measured: The tensor under them, against golden.
        errors: The reference's errors under them, None where those of the ordinary run hold.
    """

    when: str
    measured: Measured
    errors: OracleError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Answer to `Backwards`, `DoubleBackward`, `Autocast` and the trials of composition.

    Attributes:
        equal: Tensors that came back with the bits of the ordinary run.
        notes: What a reader should know, such as `double backward raises`.
        uncovered: What could not be tried, and why.
    """

    problems: tuple[Problem, ...] = ()
    different: tuple[Different, ...] = ()
    equal: int = 0
    notes: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
