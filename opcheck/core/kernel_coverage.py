"""What an audit reaches of the kernels: the lines that ran and the states that masks had, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opcheck.core.policy import limit

COVERAGE = "coverage"  # the key in registry.toml
PRAGMA = "# opcheck: no cover"  # what an author writes beside a statement that no case need reach

_PRAGMA = re.compile(r"#\s*opcheck:\s*no cover\b")

#: States of a mask, as bits: every lane on, some, none; and that it has had more than one lane.
ON, PARTLY, OFF, BLOCK = 1, 2, 4, 8
STATES: Mapping[int, str] = {ON: "all on", PARTLY: "partly on", OFF: "all off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageLimits:
    """How much an op's cases must reach of its kernels where `--coverage` is asked."""

    lines: float = limit(
        0.0,
        "Share of the lines of an op's kernels that its cases must reach under --coverage.",
        loose="lower",
        most=1.0,
    )
    masks: float = limit(
        0.0, "Share of their masked accesses whose mask must have been partly on.", loose="lower", most=1.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of a kernel: its line, and what would have to happen for it to be reached."""

    line: int
    unless: str = ""
    excluded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """A masked access of a kernel: its line, what it does, and the mask as it is written."""

    line: int
    access: str
    text: str
    excluded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A `@triton.jit` function, as its source has it.

    Attributes:
        line: Of its `def`.
        excluded: Whether all of it is.
        configs: The constants of each autotuning configuration, empty where it is not tuned.
    """

    name: str
    file: str
    line: int
    statements: tuple[Statement, ...] = ()
    masks: tuple[Mask, ...] = ()
    excluded: bool = False
    configs: tuple[Mapping[str, str], ...] = ()

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.file}:{self.line}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What launches of one specialisation of a kernel reached of one function, by the places in its `Source`.

    Attributes:
        function: Key of the function.
        kernel: Name of the kernel that was launched; another one where the function is a device function.
        constants: The values of the kernel's constexpr arguments.
        masks: The states that each mask had, as bits.
    """

    function: str
    kernel: str
    constants: Mapping[str, str] = field(default_factory=dict)
    statements: tuple[int, ...] = ()
    masks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Lines that were never reached, first to last, and what would have to happen for the first of them."""

    first: int
    last: int
    unless: str = ""

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSeen:
    """A masked access that was reached.

    Attributes:
        mask: The mask as it is written.
        seen: Its states: all on, partly on, all off.
        block: Whether it had more than one lane; a mask of one lane cannot be partly on.
    """

    line: int
    access: str
    mask: str
    seen: tuple[str, ...]
    block: bool

    @property
    def covered(self) -> bool:
        """Whether it was partly on, or a mask of one lane both on and off."""
        return STATES[PARTLY] in self.seen or (not self.block and len(self.seen) > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What some specialisations do not reach and others do.

    Attributes:
        specialisations: The kernel's constants, one string each.
        missing: Ranges of lines.
        never_partial: Lines of masked accesses.
    """

    specialisations: tuple[str, ...]
    missing: tuple[str, ...] = ()
    never_partial: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCoverage:
    """What an audit reached of one `@triton.jit` function, all ops and specialisations together.

    Attributes:
        place: File and line of its `def`.
        ops: The ops whose cases ran it; none where no audited case does.
        lines: Lines with a statement, those excluded left out; `reached` counts those that ran.
        excluded: Lines marked `# opcheck: no cover`.
        masks: Its masked accesses that were reached.
        specialisations: How many there were.
        unlaunched: Autotuning configurations that no case launched.
    """

    kernel: str
    place: str
    ops: tuple[str, ...] = ()
    lines: int = 0
    reached: int = 0
    excluded: int = 0
    gaps: tuple[Gap, ...] = ()
    masks: tuple[MaskSeen, ...] = ()
    specialisations: int = 0
    differences: tuple[Difference, ...] = ()
    unlaunched: tuple[str, ...] = ()

    @property
    def never_partial(self) -> tuple[MaskSeen, ...]:
        """The masked accesses whose mask was only ever all on or all off."""
        return tuple(item for item in self.masks if not item.covered)


def excludes(line: str) -> bool:
    """Say whether a line carries the comment behind code; on a line of its own it would be unclear of what."""
    return bool(_PRAGMA.search(line) and line.partition("#")[0].strip())


def source_from(data: Mapping[str, Any]) -> Source:
    """Read a source back from JSON; the inverse of `to_json`."""
    statements = tuple(Statement(**item) for item in data["statements"])
    return Source(
        **{
            **data,
            "statements": statements,
            "masks": tuple(Mask(**item) for item in data["masks"]),
            "configs": tuple(data["configs"]),
        }
    )


def ran_from(data: Mapping[str, Any]) -> Ran:
    """Read what ran back from JSON; the inverse of `to_json`."""
    return Ran(**{**data, "statements": tuple(data["statements"])})
