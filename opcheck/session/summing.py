"""What evidence says of an op in short: its limits and how much of them was used, and what its cases combined."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from opcheck.checks import all_checks
from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.gate import MACHINE, OURS
from opcheck.core.policy import ByWidth, Policy, limits_for
from opcheck.core.report import OpReport
from opcheck.core.verdict import Verdict


def again(report: OpReport, *, died: bool, unlearnt: str) -> str:
    """Say why an outcome is not to be relied on the next time, empty where it is."""
    findings = [item for case in report.cases for item in case.findings]
    if any(item.waived for item in findings):
        return "a waiver covers what it failed in"
    if any(item.verdict is Verdict.FAIL for item in findings):
        return "it failed"
    if died:
        return "a worker died over it"
    if any(item.check == OURS for item in findings):
        return "opcheck itself broke over it"
    if any(item.check == MACHINE for item in findings):
        return "the machine kept a case from being judged"
    return f"it could not be run once before its cases were planned: {unlearnt}" if unlearnt else ""


def combined(report: OpReport) -> dict[str, Any]:
    """Return the cases and what they are of, as fields of `Evidence`."""
    cases = [Case.parse(case.id) for case in report.cases]
    return {
        "cases": len(cases),
        "case_ids": tuple(case.id for case in report.cases),
        "dtypes": tuple(dict.fromkeys(case.dtype for case in cases)),
        "families": tuple(dict.fromkeys(case.values for case in cases)),
        "layouts": tuple(dict.fromkeys(case.layout for case in cases)),
        "variants": tuple(dict.fromkeys(case.variant for case in cases)),
    }


def limits(policy: Policy, op: str, checks: Collection[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the limits of an op by check and element type, as plain numbers."""
    contract = policy.ops[op]
    dtypes = dict.fromkeys((*contract.dtypes, *(dtype for mixed in contract.mixed for dtype in mixed.values())))
    known = all_checks()
    return {name: {dtype: _plain(known[name].limits, name, policy, op, dtype) for dtype in dtypes} for name in checks}


def _plain(kind: type, check: str, policy: Policy, op: str, dtype: str) -> dict[str, Any]:
    held: Any = limits_for(kind, check, policy, op, dtype)
    values = {item.name: getattr(held, item.name) for item in fields(kind)}
    return {name: value.of(dtype) if isinstance(value, ByWidth) else value for name, value in values.items()}


def most_used(policy: Policy, report: OpReport) -> dict[str, float]:
    """Return the largest measured/allowed of each check and element type that compares a number with a limit.

    A figure beyond its limit that was accepted on other evidence says nothing about the limit and is left out.
    """
    most: dict[str, float] = {}
    for case in report.cases:
        dtypes = {row.tensor: row.dtype for row in case.tensors}
        for item in case.findings:
            if dtype := dtypes.get(item.tensor):
                for share in _share(item, policy, report.op, dtype):
                    key = f"{item.check} {dtype}"
                    most[key] = max(most.get(key, 0.0), share)
    return {key: float(f"{share:.4g}") for key, share in sorted(most.items())}


def _share(item: Finding, policy: Policy, op: str, dtype: str) -> Iterator[float]:
    numbers = item.numbers
    pairs: Mapping[str, tuple[str, str]] = {
        "numerics": ("target_error", "threshold"), "slices": ("slice_error", "slice_allowed"),
    }  # fmt: skip
    if item.check in pairs:
        measured, allowed = (numbers.get(name, 0.0) for name in pairs[item.check])
    elif item.check == "ulp" and "max_ulp" in numbers:
        held = _plain(all_checks()["ulp"].limits, "ulp", policy, op, dtype)
        measured, allowed = numbers["max_ulp"], held["max_ulp"]
    else:
        return
    if allowed > 0 and (measured <= allowed or item.verdict is Verdict.FAIL):
        yield measured / allowed
