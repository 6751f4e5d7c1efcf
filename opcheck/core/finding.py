"""What a check says: one finding per tensor, with the law, the numbers and the place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opcheck.core.pictures import Picture
from opcheck.core.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check's answer for one tensor of one case.

    Attributes:
        check: Name of the check.
        tensor: The tensor that it is about; empty for the op as a whole.
        verdict: PASS findings are kept too: they are the evidence.
        law: What must hold, one sentence in the indicative.
        detail: Measured against allowed, and where.
        looks_like: What the pattern of the errors suggests.
        numbers: Figures for the table and for machines, by name.
        waived: The reason of the waiver that covers it.
        not_covered: What the check could not try here, and why.
        pictures: What the errors look like, of a tensor that is not simply right.
        place: The line that it is about, `file:line`: of the kernel, or of what raised; empty where none is known.
    """

    check: str
    tensor: str
    verdict: Verdict
    law: str
    detail: str = ""
    looks_like: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    waived: str = ""
    not_covered: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    place: str = ""
