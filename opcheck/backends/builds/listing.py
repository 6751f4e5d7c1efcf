"""Read Triton's IR (TTIR) as text: which operations it has, and on which of the author's lines.

TTIR is what the kernel says, inlined and simplified, before anything is chosen for a target.
"""

from __future__ import annotations

import re

_DEFINED = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.MULTILINE)
_USED = re.compile(r"#loc\d*")
_PLACE = re.compile(r'"([^"]+)":(\d+):\d+')
_ARGUMENTS = re.compile(r"tt\.func public .*")

_DOUBLE = re.compile(r"(?<![\w%])(?:[\dx]+x)?f64\b")
_TF32 = re.compile(r"tt\.dot .*inputPrecision = tf32 : tensor<[\dx]+xf32>")
_ATOMIC = re.compile(r"tt\.atomic_rmw fadd,.*-> (?:tensor<[\dx]+x)?(b?f16)\b")
_NAMES = {"f16": "float16", "bf16": "bfloat16"}


def double(ttir: str) -> str:
    """Return the line of the first FP64 operation, empty where an argument is FP64 or nothing is."""
    signature = _ARGUMENTS.search(ttir)
    if signature is None or re.search(r"\bf64\b", signature[0]):
        return ""
    found = (line for line in _operations(ttir) if _DOUBLE.search(line) and " arith.constant " not in line)
    return next((_place(line, ttir) for line in found), "")


def tf32(ttir: str) -> str:
    """Return the line of the first dot of FP32 operands in TF32, empty where there is none."""
    return next((_place(line, ttir) for line in _operations(ttir) if _TF32.search(line)), "")


def atomics(ttir: str) -> str:
    """Return the type and the line of the first atomic addition in FP16 or BF16, empty where there is none."""
    for line in _operations(ttir):
        if match := _ATOMIC.search(line):
            return f"{_NAMES[match[1]]} at {_place(line, ttir)}"
    return ""


def _operations(ttir: str) -> list[str]:
    return [line for line in ttir.splitlines() if line.startswith("  ") and "tt.func" not in line]


def _place(line: str, ttir: str) -> str:
    """Return `file:line` of an operation: of the function that it stands in, where that was inlined."""
    defined = {match[1]: match[2] for match in _DEFINED.finditer(ttir)}
    text = line[line.rfind(" loc(") :]
    for _ in range(len(defined) + 1):
        if match := _PLACE.search(text):
            return f"{match[1]}:{match[2]}"
        used = _USED.search(text)
        if used is None:
            break
        text = defined.get(used[0], "")
    return "an unknown line"
