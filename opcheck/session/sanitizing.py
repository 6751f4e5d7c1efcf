"""What `--sanitize` asks for: which tools, whether this machine has them, and on which cases."""

from __future__ import annotations

import difflib
import importlib.util
import math
import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from opcheck.core.cases import Planned
from opcheck.core.sanitizer import MODES, SANITIZE, TOOLS
from opcheck.errors import OpcheckError
from opcheck.run.sanitize import EXECUTABLE
from opcheck.session.options import Options

#: Under a sanitizer every access costs 10 to 100 times as much, and one program shows what a thousand would.
SMALL = 1 << 14  # elements of a case
#: Seconds beyond `--timeout` after which a worker that waits for a sanitizer is given up.
GRACE = 30.0
_HAS_MODES = "3.9"  # the oldest Triton in which all of MODES have been seen


def sanitizing(options: Options, backend: str) -> Options:
    """Return the options of an audit by sanitizers alone, at the quick level; as they are where none is asked for.

    Raises:
        OpcheckError: A tool is unknown or missing, or cannot watch what this backend runs.
    """
    if not options.sanitize:
        if SANITIZE in options.checks:
            raise OpcheckError(f"--check {SANITIZE}: name its tools with --sanitize, of {', '.join(TOOLS)}")
        return options
    for tool in options.sanitize:
        if tool not in TOOLS:
            close = difflib.get_close_matches(tool, TOOLS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise OpcheckError(f"--sanitize: {tool!r} is not a sanitizer; there are {', '.join(TOOLS)}{hint}")
    if options.checks:
        raise OpcheckError(f"--sanitize runs the check {SANITIZE} alone; leave out --check {' '.join(options.checks)}")
    if backend != "cuda":
        raise OpcheckError(
            f"--sanitize watches compiled kernels and this audit runs on {backend}; call it with --backend cuda"
        )
    for tool in options.sanitize:
        if why := _missing(tool):
            raise OpcheckError(f"--sanitize {tool}: {why}")
    return replace(options, checks=(SANITIZE,), level="quick")


def small(cases: Iterable[Planned]) -> tuple[Planned, ...]:
    """Keep what a sanitizer can show in reasonable time: small shapes, and values that all kernels take alike."""
    return tuple(item for item in cases if math.prod(item.case.dims.values()) <= SMALL and item.case.values == "normal")


def _missing(tool: str) -> str:
    """Say why a tool cannot be used here, empty where it can."""
    if tool not in MODES:
        return "" if shutil.which(EXECUTABLE) else f"{EXECUTABLE} is not on PATH; it is part of the CUDA toolkit"
    found = importlib.util.find_spec("triton")
    home = Path(found.origin).parent if found is not None and found.origin else None
    if home is not None and _names(home / "backends" / "nvidia" / "compiler.py", tool):
        return ""
    return f"the installed Triton has no instrumentation mode of that name; Triton {_HAS_MODES} has it"


def _names(source: Path, mode: str) -> bool:
    """Say whether a compiler's source speaks of a mode: the list of modes stands nowhere else."""
    return source.is_file() and re.search(rf"['\"]{mode}['\"]", source.read_text(errors="replace")) is not None
