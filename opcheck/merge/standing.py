"""Does evidence, perhaps of another machine, stand for the working tree?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opcheck.core.evidence import Line, intact
from opcheck.evidence.here import Here
from opcheck.evidence.standing import sources

OPCHECK = "opcheck"
_SHOWN = 3  # reasons


class Standing:
    """Says why a line is not of what is here now: the project, and opcheck itself.

    Versions and variables of the machine do not count: evidence of a GPU is made on another one.
    """

    @classmethod
    def of(cls, folder: Path, document: Mapping[str, Any]) -> Standing:
        """Look at the folder of a registry."""
        return cls(Here(folder), document)

    def __init__(self, here: Here, document: Mapping[str, Any]) -> None:
        self._here, self._document = here, document
        self._known: dict[int, str] = {}

    def __call__(self, line: Line) -> str:
        if id(line) not in self._known:
            self._known[id(line)] = self._why(line)
        return self._known[id(line)]

    def _why(self, line: Line) -> str:
        if not intact(line):
            return "its key is not that of its manifest: the line was edited"
        if not line.manifest.files:
            return "its manifest names no file"
        if why := list(sources(line, self._here, self._document)):
            return "; ".join(why[:_SHOWN]) + (f"; and {len(why) - _SHOWN} more" if len(why) > _SHOWN else "")
        made, here = line.manifest.distributions.get(OPCHECK, "unknown"), self._here.version(OPCHECK)
        return "" if made == here else f"opcheck is {here}, and was {made}"
