"""What a calibration keeps: ratios of right kernels, and what became of each planted fault."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

EXAMPLES = 4  # alarms told in full per law, op and kernel


class Right(NamedTuple):
    """Where a comparison of a right kernel belongs."""

    setting: str
    law: str
    dtype: str
    op: str
    kernel: str
    reference: str
    sizes: str
    values: str
    tensor: str


class Fault(NamedTuple):
    """Where a planted fault belongs."""

    setting: str
    fault: str
    dtype: str
    op: str
    sizes: str
    values: str
    tensor: str


@dataclass(slots=True)
class Caught:
    """What became of a fault: how often planted, which law failed it first, and what was beyond the printed limit.

    Attributes:
        above: Faults whose size exceeds the threshold plus the right target's own error.
        above_missed: Those of them that no law failed; the sentence of the table is that there are none.
        limit: The largest printed detection limit (the threshold) of those with a valid gate, over its tensor's scale.
        unjudged: Faults that no law failed where the gate was invalid: INCONCLUSIVE, never PASS.
        largest_missed: Size of the largest missed fault, over its tensor's scale.
    """

    planted: int = 0
    above: int = 0
    above_missed: int = 0
    unjudged: int = 0
    limit: float = 0.0
    largest_missed: float = 0.0
    first: dict[str, int] = field(default_factory=dict)

    @property
    def caught(self) -> int:
        """How many a law failed."""
        return sum(self.first.values())

    def add(self, other: Caught) -> None:
        """Add the counts of another batch."""
        self.planted += other.planted
        self.above += other.above
        self.above_missed += other.above_missed
        self.unjudged += other.unjudged
        self.limit = max(self.limit, other.limit)
        self.largest_missed = max(self.largest_missed, other.largest_missed)
        for law, count in other.first.items():
            self.first[law] = self.first.get(law, 0) + count


@dataclass(slots=True)
class Tally:
    """All results so far.

    Attributes:
        ratios: Measured over allowed of right kernels.
        invalid: Comparisons of right kernels for which numerics had no valid gate.
        alarms: FAIL of a right kernel, counted.
        borderline: The same two, ratios only, of kernels that lose accuracy.
        told: For each law, op and kernel a few alarms in full.
    """

    ratios: dict[Right, array[float]] = field(default_factory=dict)
    borderline: dict[Right, array[float]] = field(default_factory=dict)
    alarms: dict[Right, int] = field(default_factory=dict)
    invalid: dict[Right, int] = field(default_factory=dict)
    faults: dict[Fault, Caught] = field(default_factory=dict)
    told: dict[str, list[str]] = field(default_factory=dict)

    def tell(self, key: Right, text: str) -> None:
        """Keep the words of an alarm, while they are few."""
        kept = self.told.setdefault(f"{key.setting} {key.law} {key.op} {key.kernel}", [])
        if len(kept) < EXAMPLES:
            kept.append(text)

    def add(self, other: Tally) -> None:
        """Add the results of another batch."""
        for mine, theirs in ((self.ratios, other.ratios), (self.borderline, other.borderline)):
            for key, values in theirs.items():
                mine.setdefault(key, array("d")).extend(values)
        for counts, more in ((self.alarms, other.alarms), (self.invalid, other.invalid)):
            for key, count in more.items():
                counts[key] = counts.get(key, 0) + count
        for fault, caught in other.faults.items():
            self.faults.setdefault(fault, Caught()).add(caught)
        for name, texts in other.told.items():
            kept = self.told.setdefault(name, [])
            kept.extend(texts[: EXAMPLES - len(kept)])
