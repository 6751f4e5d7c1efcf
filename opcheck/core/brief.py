"""A report without what its printed form leaves out: a hundredth of the whole, quick to read back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from opcheck.core.power import smallest_caught
from opcheck.core.report import CaseReport, OpReport, TensorRow
from opcheck.core.verdict import Verdict

_UNSAID = (Verdict.PASS, Verdict.PASS_WITH_LIMITATIONS)  # of a finding: a limitation stands in the op's own list


def brief(op: OpReport) -> OpReport:
    """Return a report that prints as `op` does, whatever the verbosity.

    Every case stays, with its verdict and time; of its tensors those that the table and the smallest error caught are
    taken from, of its findings those that are told in full.
    """
    kept = {id(row) for row in (*worst_rows(op.cases), *_first_rows(op.cases))}
    caught = {(case, name) for name, (_, case) in smallest_caught(op.cases).items()}

    def shortened(case: CaseReport) -> CaseReport:
        rows = tuple(
            row for row in case.tensors if id(row) in kept or (case.id, f"{row.tensor} ({row.dtype})") in caught
        )
        findings = tuple(item for item in case.findings if item.verdict not in _UNSAID and not item.waived)
        return replace(case, tensors=rows, findings=findings, skipped={})

    return replace(op, cases=tuple(map(shortened, op.cases)))


def _first_rows(cases: Iterable[CaseReport]) -> list[TensorRow]:
    """Return the first row of each tensor and dtype: the table is in their order."""
    found: dict[tuple[str, str], TensorRow] = {}
    for case in cases:
        for row in case.tensors:
            found.setdefault((row.tensor, row.dtype), row)
    return list(found.values())


def worst_rows(cases: Iterable[CaseReport]) -> list[TensorRow]:
    """Return for each tensor and dtype the row that matters most: the worst verdict, then the least room left."""
    found: dict[tuple[str, str], TensorRow] = {}
    for case in cases:
        for row in case.tensors:
            key = (row.tensor, row.dtype)
            if key not in found or _weight(row) > _weight(found[key]):
                found[key] = row
    return list(found.values())


def _weight(row: TensorRow) -> tuple[int, float]:
    used = row.target_error / row.threshold if row.threshold else math.inf if row.target_error else 0.0
    return row.verdict.severity, used
