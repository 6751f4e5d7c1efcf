"""New reasons: a promise may be taken back where the change itself says why, and base does not say so already."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from opcheck.core.decision import Point, Rule
from opcheck.core.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """The reasons that head gives and base does not."""

    base: Policy
    head: Policy

    def of(self, op: str, what: str) -> str:
        """Return the reason of a `[[change]]` that is about this and that base has not, empty where there is none."""
        fresh = (item for item in self.head.changes if item not in self.base.changes)
        return next((item.reason for item in fresh if item.what == what and fnmatchcase(op, item.op)), "")

    def point(self, rule: Rule, op: str, what: str, sentence: str, *, own: str = "") -> Point:
        """Return a point that a new reason opens: one that stands beside what changed, or one in a `[[change]]`."""
        return Point(
            rule=rule,
            op=op,
            sentence=f"{op}: {sentence}",
            opens=f'take it back, or say why: [[change]] op = "{op}", what = "{what}", reason = "..."',
            acknowledged=own or self.of(op, what),
        )
