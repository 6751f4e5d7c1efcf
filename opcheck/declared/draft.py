"""The table to paste for an op that is registered and not declared."""

from __future__ import annotations

import json

from opcheck.core.policy import KINDS
from opcheck.core.spec import OpSpec


def draft(spec: OpSpec) -> str:
    """Return TOML that declares an op as far as it can be guessed, with a comment where the author must choose."""
    return table(spec.name)


def table(name: str) -> str:
    """Return that TOML for an op of which only the name is known."""
    lines = (
        (f"[op.{json.dumps(name)}]", ""),
        ('kind = "elementwise"', f"one of {' '.join(KINDS)}"),
        ('dtypes = ["float32", "float16", "bfloat16"]', "the element types that it promises"),
        ('dims = ["n"]', 'the names that samples(case) asks for; "..." first for any leading ones'),
    )
    return "".join(f"{line}  # {comment}\n" if comment else f"{line}\n" for line, comment in lines)
