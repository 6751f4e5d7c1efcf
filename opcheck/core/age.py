"""How old evidence may be, as people write it: `14d`, `36h`, `2w`."""

from __future__ import annotations

import datetime
import re

FORM = r"[1-9][0-9]{0,4}[hdw]"  # TOML, JSON Schema and the command line share it
CALLED = 'an age in hours, days or weeks, such as "36h", "14d" or "2w"'

_HOURS = {"h": 1, "d": 24, "w": 168}


def age_of(text: str) -> datetime.timedelta | None:
    """Return the age that a text gives, None where it gives none."""
    return datetime.timedelta(hours=int(text[:-1]) * _HOURS[text[-1]]) if re.fullmatch(FORM, text) else None


def told(age: datetime.timedelta) -> str:
    """Return an age in words, in whole hours below two days and in whole days from there on."""
    hours = int(age.total_seconds() // 3600)
    return f"{hours} {'hour' if hours == 1 else 'hours'}" if hours < 48 else f"{hours // 24} days"
