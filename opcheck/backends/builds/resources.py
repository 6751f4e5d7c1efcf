"""Read what a built kernel takes of a GPU: from a cubin by cuobjdump, from AMD's assembly by its metadata."""

from __future__ import annotations

import re
import subprocess
import tempfile
from typing import Any

WORD = 4  # bytes of a register
UNKNOWN = (-1, -1)

_CUDA = re.compile(r"REG:(\d+) STACK:(\d+)")


def registers_and_spills(assembly: Any) -> tuple[int, int]:
    """Return registers of a thread and 32-bit words of it in local memory, -1 each where nothing tells them.

    Local memory holds what the assembler spills, and the few arrays of libdevice's own: Triton counts alike.
    """
    if "cubin" in assembly:
        return _of_cubin(assembly["cubin"])
    return _of_amdgcn(assembly["amdgcn"]) if "amdgcn" in assembly else UNKNOWN


def _of_cubin(cubin: bytes) -> tuple[int, int]:
    import triton

    try:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, RuntimeError, subprocess.CalledProcessError):
        return UNKNOWN
    match = _CUDA.search(printed)
    return (int(match[1]), int(match[2]) // WORD) if match else UNKNOWN


def _of_amdgcn(text: str) -> tuple[int, int]:
    found = {name: re.search(rf"\.{name}:\s+(\d+)", text) for name in ("vgpr_count", "private_segment_fixed_size")}
    registers, local = (int(match[1]) if match else -1 for match in found.values())
    return registers, local // WORD if local >= 0 else -1
