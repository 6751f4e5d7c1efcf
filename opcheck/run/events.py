"""What the parent of workers sees happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How a worker ended in the middle of an item.

    Attributes:
        reason: Such as "killed by SIGSEGV" or "no answer within 60 s, killed".
        log: The end of what was printed since the item was handed out, at most 2000 characters.
        timed_out: Whether it was killed for its silence.
    """

    reason: str
    log: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A worker sent `body` while it worked on an item."""

    item_index: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An item is finished."""

    item_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """The worker of an item is dead and the item is not finished; the rest of it is the caller's to resubmit."""

    item_index: int
    death: Death


Event = Message | Done | Died


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An item and its index in the run."""

    index: int
    item: Mapping[str, Any]
