"""How a report is looked at: how much of it is told, and where the paths in it start."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import PurePath

from opcheck.render.plain import safe

_PLACE = re.compile(r"(?P<file>[^\n\t]{1,1000}):(?P<line>[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of a report is wanted, and from where it is read.

    Attributes:
        verbosity: Below 0 only failures and the summary; above 0 every case, shape, limitation and gap.
        registry: Path of the registry where the command line named one; a failure's own command line names it too.
        root: Absolute path of the repository, empty where it is not known.
        folder: Where opcheck was called, relative to the repository, empty at its root.
        contracts: Path of the registry.toml that was read, relative to where opcheck was called or absolute.
    """

    verbosity: int = 0
    registry: str = ""
    root: str = ""
    folder: str = ""
    contracts: str = "registry.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A line of a file of the repository; the path is relative to its root, with forward slashes."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def spot(place: str, view: View) -> Spot | None:
    """Return where `file:line` is in the repository, None where it is not in it, or no place that can be shown.

    Args:
        place: The file is absolute, or relative to where opcheck was called.
    """
    match = _PLACE.fullmatch(place)
    if match is None or not match["file"].strip() or safe(match["file"]) != match["file"]:
        return None
    file = PurePath(match["file"]).as_posix()
    if posixpath.isabs(file):
        root = PurePath(view.root).as_posix()
        file = posixpath.relpath(posixpath.normpath(file), root) if view.root else ".."
    else:
        file = posixpath.normpath(posixpath.join(PurePath(view.folder).as_posix(), file))
    return None if file in (".", "..") or file.startswith("../") else Spot(file=file, line=int(match["line"]))
