"""Words that any text may stand in: no control characters, no text that turns the reading order around, no end."""

from __future__ import annotations

import unicodedata

MOST = 2000  # characters of a message
_KEPT = "\n\t"
_REFUSED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def clean(text: str) -> str:
    """Return text with invisible characters written out, and cut where it is long."""
    more = f" ... ({len(text) - MOST} more characters)" if len(text) > MOST else ""
    return "".join(map(_shown, text[:MOST])) + more


def _shown(letter: str) -> str:
    if letter in _KEPT or unicodedata.category(letter) not in _REFUSED:
        return letter
    return letter.encode("unicode_escape", errors="surrogatepass").decode()
