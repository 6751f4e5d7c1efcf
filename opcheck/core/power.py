"""What a case could tell apart: a tolerance that would also accept zeros proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from opcheck.core.draws import RANDOMNESS
from opcheck.core.report import CaseReport, TensorRow


def vacuous(row: TensorRow) -> str:
    """Return the wrong answer that this row's tolerance would also accept, empty where it tells them all apart.

    Zeros are `scale` away from golden and half of it `scale / 2`; an input handed back or another gradient is
    `decoy_distance` away.
    """
    if scaled := _scaled(row):
        return scaled
    if row.decoy_distance <= row.threshold:
        return f"{row.decoy} in its place"
    return ""


def _scaled(row: TensorRow) -> str:
    if row.scale <= row.threshold:
        return "zeros"
    return "half of the result" if row.scale / 2 <= row.threshold else ""


def _identity(rows: Iterable[TensorRow]) -> bool:
    """Say whether golden is one and the same input in every case: handing back a copy of it is what the op is for."""
    told = [row for row in rows if row.scale]
    return all(row.decoy_distance == 0.0 for row in told) and len({row.decoy for row in told}) == 1


def unproven(cases: Iterable[CaseReport]) -> Iterator[str]:
    """Yield a sentence for each tensor that no case can tell from a wrong answer.

    Integers and booleans are compared exactly and are not looked at here. An op that draws random numbers is held to
    the reference's draws, and proves nothing where there are none.
    """
    cases = tuple(cases)
    draws = [item.numbers["drawn"] for case in cases for item in case.findings
             if item.check == RANDOMNESS and "drawn" in item.numbers]  # fmt: skip
    if draws and not any(draws):
        yield (
            "no case draws: the reference gives the same bits under every seed, though the op is declared random; let "
            "samples give arguments for which it draws, and name a seed that is an argument `seed`"
        )
    for name, rows in _by_tensor(cases).items():
        found = [_scaled(row) if _identity(rows) else vacuous(row) for row in rows]
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
