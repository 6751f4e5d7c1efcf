"""Text that is safe to show: no control characters, no invisible order marks, no half characters, not too long."""

from __future__ import annotations

import re
from typing import Any

LONGEST = 2_000  # characters of one message
CUT = " ..."

#: Controls but tab and newline, line and paragraph separators, what turns the order of text around or is invisible
#: (U+061C, U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F, U+FEFF, tags), surrogates, noncharacters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean(text: str, most: int = LONGEST) -> str:
    """Return text with each unsafe character written as its escape, and cut to so many characters before that."""
    return safe(shortened(text, most))


def shortened(text: str, most: int = LONGEST) -> str:
    """Return text, cut to so many characters."""
    return text if len(text) <= most else text[: most - len(CUT)] + CUT


def safe(text: str) -> str:
    """Return text with each unsafe character written as its escape."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def line(text: str, most: int = LONGEST) -> str:
    """Return text as `clean` does, in one line."""
    return " ".join(clean(text, most).split())


def cut(text: str, most: int) -> str:
    """Return the whole lines at the start of text that fit into so many bytes of UTF-8."""
    raw = text.encode()
    if most <= 0:
        return ""
    return text if len(raw) <= most else raw[: raw.rfind(b"\n", 0, most) + 1].decode()


def sound(value: Any) -> Any:
    """Return plain JSON values in which every string is valid Unicode; a lone surrogate is written as its escape."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {sound(key): sound(part) for key, part in value.items()}
    return [sound(part) for part in value] if isinstance(value, list) else value


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
