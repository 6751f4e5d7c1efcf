"""The file itself: where it is and whether it is TOML."""

from __future__ import annotations

import os.path
import re
import tomllib
from pathlib import Path
from typing import Any

from opcheck.errors import PolicyError

NAME = "registry.toml"

_PLACE = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)


def find(start: Path | None = None) -> Path:
    """Return the nearest `registry.toml` at or above a folder, the working directory by default.

    Raises:
        PolicyError: There is none.
    """
    origin = (start or Path.cwd()).absolute()
    for folder in (origin, *origin.parents):
        if os.path.isfile(folder / NAME):
            return folder / NAME
    raise PolicyError((f"no {NAME} in {origin} or in a folder above it; start one there, or name one with --registry",))


def document(path: Path) -> dict[str, Any]:
    """Return the TOML document of a file.

    Raises:
        PolicyError: It cannot be read or is not TOML; one sentence, with line and column where there is one.
    """
    return document_of(_bytes(path), path.name)


def document_of(raw: bytes, name: str) -> dict[str, Any]:
    """Return the TOML document that bytes hold; `name` is that of their file, for the errors.

    Raises:
        PolicyError: They are not TOML in UTF-8; one sentence, with line and column where there is one.
    """
    text = _text(raw, name)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise PolicyError((f"{name}: lists or tables are nested too deep to be read",)) from None
    except tomllib.TOMLDecodeError as error:
        raise PolicyError((f"{name}:{_fault(str(error), text)}",)) from None
    except ValueError:
        raise PolicyError((f"{name}: an integer has too many digits to be read",)) from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        sentence = f"no registry at {path}; name one with --registry, or run below the folder of a {NAME}"
        raise PolicyError((sentence,)) from None
    except IsADirectoryError:
        raise PolicyError((f"{path} is a folder; the registry is a file, such as {path / NAME}",)) from None
    except OSError as error:
        raise PolicyError((f"{path} cannot be read: {error.strerror}",)) from None


def _text(raw: bytes, name: str) -> str:
    """Return the text that bytes hold in UTF-8, a byte order mark left out."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        sentence = f"{name}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8; TOML files are UTF-8"
        raise PolicyError((sentence,)) from None


def _fault(message: str, text: str) -> str:
    """Rewrite what `tomllib` says, "Sentence (at line 1, column 2)", as `line:column: sentence`."""
    lines = text.splitlines() or [""]
    match = _PLACE.fullmatch(message)
    what = match["what"] if match else message
    said = f"not TOML: {what[:1].lower()}{what[1:]}"
    if match is None:
        return f" {said}"
    line = int(match["line"] or len(lines))
    column = int(match["column"] or len(lines[-1]) + 1)
    bare = "::" in lines[line - 1] and '"' not in lines[line - 1]
    return f"{line}:{column}: {said}" + ('; the name of an op needs quotes: [op."ns::name"]' if bare else "")
