"""What an observed run shows of a kernel's memory: its launches, its accesses, and those that break a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MEMORY = "memory"  # the check
NO_LAUNCH = "no Triton kernel was launched, so there was nothing to observe"
ATEN_ONLY = "no kernel ran but PyTorch's own, so there was nothing of the op's to observe"
NOTHING = (NO_LAUNCH, ATEN_ONLY)  # how the detail of a finding starts that is about no kernel of the op

#: outside: in no memory that the launch was given. around: in the buffer of one of the case's tensors, but not in the
#: tensor. unwritten: read, `torch.empty` memory, before anything was written there. returned: such memory in a result.
#: race: two programs of one launch, of which one stores. masked: what a masked lane holds changes a result.
#: wrapped: at an address that is computed from an integer which wrapped.
Rule = Literal["outside", "around", "unwritten", "returned", "race", "masked", "wrapped"]
Program = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """Run the target once, interpreted, and look at every load, store and atomic of its kernels before it happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """The first of the accesses on one line that break one rule, and how many there are.

    Attributes:
        tensor: The kernel's argument, or the result.
        kernel: Name of the kernel, empty for a result.
        access: `"load"`, `"store"` or `"atomic"`, empty for a result.
        where: The kernel's line.
        program, lane: Who: the program's ids, and the place in the flattened block.
        offset: Where, in elements from the argument's or the result's first one.
        count: Lanes, or elements of a result, that break the rule.
        total: Elements that the argument's memory has behind its first one, or that the result has.
        other: Of a race, what the other program did; of what wrapped, where the access is.
        meant: Of what wrapped, the offset without the wrap; `where` is then the line of the arithmetic.
    """

    rule: Rule
    tensor: str
    kernel: str = ""
    access: str = ""
    where: str = ""
    program: Program = (0, 0, 0)
    lane: int = 0
    offset: int = 0
    count: int = 1
    total: int = 0
    other: str = ""
    meant: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Of a run with a few programs of each launch, which they were and what was compared.

    Attributes:
        launches: Kernel, programs that ran, and programs of the grid, of each launch.
        compared: Each result with the elements that were compared, and how many it has.
        left: Results that were not compared, and why.
        dependent: Kernels that read what programs that were left out write.
    """

    launches: tuple[tuple[str, int, int], ...] = ()
    compared: tuple[tuple[str, int, int], ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    dependent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Answer to `Observe`.

    Attributes:
        launches: How often each kernel was launched, forward and backward.
        accesses: Loads, stores and atomics, whole blocks, that were looked at.
        computed: Kernels that make pointers from integers: only addresses in their arguments' memory can be judged.
        blind: Why nothing could be observed, empty where it could.
        sample: Which programs ran, None where all did.
    """

    launches: tuple[tuple[str, int], ...] = ()
    accesses: int = 0
    breaches: tuple[Breach, ...] = ()
    computed: tuple[str, ...] = ()
    blind: str = ""
    sample: Sample | None = None
