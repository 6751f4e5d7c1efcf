"""Audit Triton and CUDA kernels, forward and backward, before they merge.

Importing this package imports no torch; the names below do when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from opcheck.core.case import Case, Sample
from opcheck.core.verdict import Verdict
from opcheck.core.version import VERSION

if TYPE_CHECKING:
    from opcheck.adoption import adopt
    from opcheck.asserting import assert_ok
    from opcheck.core.report import AuditReport
    from opcheck.errors import AuditFailed, OpcheckError
    from opcheck.quick import verify
    from opcheck.registry import promote, register, spec
    from opcheck.session import audit

__version__ = VERSION

__all__ = [
    "AuditFailed",
    "AuditReport",
    "Case",
    "OpcheckError",
    "Sample",
    "Verdict",
    "adopt",
    "assert_ok",
    "audit",
    "promote",
    "register",
    "spec",
    "verify",
]

_LAZY = {
    "AuditFailed": "opcheck.errors",
    "AuditReport": "opcheck.core.report",
    "OpcheckError": "opcheck.errors",
    "adopt": "opcheck.adoption",
    "assert_ok": "opcheck.asserting",
    "audit": "opcheck.session",
    "promote": "opcheck.registry",
    "register": "opcheck.registry",
    "spec": "opcheck.registry",
    "verify": "opcheck.quick",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'opcheck' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
