"""Which cases a contract forbids: those must be refused, and nothing else is asked of them."""

from __future__ import annotations

from opcheck.core.case import LEADING, Case
from opcheck.core.policy import Contract

STRIDED = (
    "transposed",
    "padded",
    "narrowed",
    "expanded",
    "channels_last",
    "far",
)  # layouts that need not be contiguous


def outside(contract: Contract, case: Case) -> str:
    """Return why a case is outside of the contract, so that the op must raise; empty where it is inside."""
    for refused in contract.unsupported:
        if refused.dtype in case.dtypes:
            return f"{refused.dtype} is declared unsupported: {refused.reason}"
    for name, size in case.dims.items():
        declared = LEADING if name.startswith(LEADING) else name
        if not size and declared in contract.dims and declared not in contract.empty:
            return f"{name} is empty, and the contract's empty dimensions are {', '.join(contract.empty) or 'none'}"
    for name, layout in case.layouts.items():
        if layout in STRIDED and name in contract.contiguous:
            return f"{name} is {layout}, and declared contiguous: {contract.contiguous[name]}"
    return ""
