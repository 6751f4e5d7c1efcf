"""Trials that use an op often, in changing shapes, and beside other work; and what they show of its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from opcheck.core.behaviour import Behaviour

STRESS = "stress"  # the check

Counted = Literal["live tensors", "Python objects", "bytes of host memory", "bytes of device memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endure:
    """Call the op `steps` times `calls` times on the same values, each call in memory of its own, and count."""

    steps: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """Call the op in up to `shapes` shapes, and once more in the opposite order."""

    shapes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Run the op on a stream that is not the default one, alone and beside a stream that is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondDevice:
    """Run the op on tensors of another device than the current one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    """Run the op on inputs of a share of the device's free memory."""

    share: float


Stressed = Endure | Reshape | Streams | SecondDevice | Large


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How much more there was of something after each step of a trial than before it.

    Attributes:
        per: What a step has `count` of: calls, or new shapes.
    """

    what: Counted
    steps: tuple[int, ...]
    count: int
    per: Literal["call", "shape"] = "call"

    @property
    def sustained(self) -> float:
        """The least growth of a step, for each of what it has; what grows only now and then has none."""
        return min(self.steps, default=0) / self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Endured:
    """Answer to a trial of stress: how the op behaved, and what grew while it did."""

    behaviour: Behaviour
    growth: tuple[Growth, ...] = ()


def label_of(trial: Stressed) -> str:
    """Name a trial as it stands in findings and announcements."""
    match trial:
        case Endure():
            return "many calls"
        case Reshape():
            return "changing shapes"
        case Streams():
            return "another stream"
        case SecondDevice():
            return "a second device"
        case Large():
            return "large inputs"
