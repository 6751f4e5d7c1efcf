"""Compare what an audit says of a broken op and of its right twin with what is expected."""

from __future__ import annotations

from opcheck.core.case import Case
from opcheck.core.report import OpReport
from opcheck.core.verdict import Verdict

from .expected import Expect


def complaints(op: OpReport) -> list[str]:
    """Return every finding that is no PASS, one line each."""
    return [
        f"{case.id} {item.verdict} {item.check} {item.tensor}: {item.detail}"
        for case in op.cases
        for item in case.findings
        if item.verdict is not Verdict.PASS
    ]


def missed(want: Expect, op: OpReport) -> str:
    """Return how the audit of a broken op differs from what is expected, empty where it does not."""
    found = [(case, item) for case in op.cases for item in case.findings if item.verdict is not Verdict.PASS]
    pairs = {(item.check, item.tensor) for _, item in found}
    if op.verdict is not Verdict.FAIL or {item.verdict for _, item in found} != {Verdict.FAIL}:
        return f"the verdict is {op.verdict}"
    if pairs - want.perhaps != want.fails - want.perhaps or not pairs >= want.fails:
        return f"it fails {sorted(pairs)}, expected is {sorted(want.fails)}"
    if elsewhere := [case.id for case, _ in found if want.only not in case.id]:
        return f"it fails where it is right: {elsewhere[0]}"
    families = {Case.parse(case.id).values for case, _ in found}
    if want.values and families != set(want.values):
        return f"it fails in the families {sorted(families)}, expected are {sorted(want.values)}"
    if not any(want.says in f"{item.detail} {item.looks_like}" for case, item in found if want.among in case.id):
        return f"no failure says {want.says!r}"
    return ""
