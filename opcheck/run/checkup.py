"""What `opcheck doctor` finds out, in a worker of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opcheck.core.policy import DTYPES
from opcheck.run.environment import versions


def serve(channel: Any, payload: Mapping[str, Any]) -> None:
    """Answer an item with the lines to print and whether all is well."""
    for _ in channel.items():
        lines, healthy = checkup()
        channel.send({"lines": lines, "healthy": healthy})


def checkup() -> tuple[list[str], bool]:
    """Return versions, devices and the interpreter's self-test as lines, and whether nothing is wrong."""
    from opcheck.backends import interpreter

    lines = [f"{name:<10} {version}" for name, version in versions().items()]
    healthy = "missing" not in versions().values()
    devices = sorted(str(path) for path in Path("/dev").glob("nvidia[0-9]*"))
    lines.append(f"{'gpu':<10} {', '.join(devices) or 'none: audits run on the Triton interpreter'}")
    repair = interpreter.install()
    state = "repaired" if repair.active else f"not repaired: {repair.reason}"
    lines.append(f"{'interpreter':<10} {state}")
    for probe in interpreter.probes():
        lines.append(f"  {'ok' if probe.passed else 'WRONG':<6} {probe.dtype:<14} {probe.name}  {probe.detail}")
        healthy = healthy and probe.passed
    for dtype in DTYPES:
        why = interpreter.trusted(dtype)
        lines.append(f"  verdicts of {dtype} {'are given' if not why else 'are refused: ' + why}")
    return lines, healthy
