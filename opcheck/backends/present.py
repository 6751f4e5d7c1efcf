"""Which backend and which GPU are here, asked of the system: torch takes seconds to say it."""

from __future__ import annotations

import re
from pathlib import Path

_DRIVER = Path("/proc/driver/nvidia")


def backend_of(wanted: str) -> str:
    """Return the backend that is meant: for "auto", the GPU where the system shows one."""
    if wanted != "auto":
        return wanted
    return "cuda" if any(Path("/dev").glob("nvidia[0-9]*")) else "cpu"


def gpus(driver: Path = _DRIVER) -> frozenset[str]:
    """Return the names of the GPUs, as torch names them; none where the driver does not tell."""
    told = (_read(place) for place in sorted(driver.glob("gpus/*/information")))
    return frozenset(found[1].strip() for text in told if (found := re.search(r"^Model:(.*)$", text, re.MULTILINE)))


def driver_version(driver: Path = _DRIVER) -> str:
    """Return the version of NVIDIA's driver, empty where there is none."""
    found = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", _read(driver / "version"))
    return found[0] if found else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
