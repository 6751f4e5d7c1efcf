"""What a case could tell apart: a tolerance that would also accept zeros proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from opcheck.core.report import CaseReport, TensorRow


def vacuous(row: TensorRow) -> str:
    """Return the wrong answer that this row's tolerance would also accept, empty where it tells them all apart.

    Zeros are `scale` away from golden and half of it `scale / 2`; an input handed back or another gradient is
    `decoy_distance` away.
    """
    if row.scale <= row.threshold:
        return "zeros"
    if row.scale / 2 <= row.threshold:
        return "half of the result"
    if row.decoy_distance <= row.threshold:
        return f"{row.decoy} in its place"
    return ""


def unproven(cases: Iterable[CaseReport]) -> Iterator[str]:
    """Yield a sentence for each tensor that no case can tell from a wrong answer.

    Integers and booleans are compared exactly and are not looked at here.
    """
    for name, rows in _by_tensor(cases).items():
        found = [vacuous(row) for row in rows]
        if all(found):
            would = ", ".join(dict.fromkeys(found))
            yield f"no case counts for {name}: each tolerance would also accept {would}; give it values that matter"


def smallest_caught(cases: Iterable[CaseReport]) -> dict[str, tuple[float, str]]:
    """Return for each tensor and type the smallest error of one element, relative to the scale, that a case catches.

    With the id of that case. Every gate is a maximum over elements, so one wrong element is enough.
    """
    best: dict[str, tuple[float, str]] = {}
    for case in cases:
        for row in case.tensors:
            if vacuous(row) or not row.gate_valid:
                continue
            key = f"{row.tensor} ({row.dtype})"
            relative = row.threshold / row.scale
            if key not in best or relative < best[key][0]:
                best[key] = relative, case.id
    return best


def _by_tensor(cases: Iterable[CaseReport]) -> Mapping[str, list[TensorRow]]:
    rows: dict[str, list[TensorRow]] = {}
    for case in cases:
        for row in case.tensors:
            rows.setdefault(row.tensor, []).append(row)
    return rows
