"""The printed report: per op its contract and the protocol's table, failures in full, one line at the end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from tabulate import tabulate

from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.following import again, failing
from opcheck.core.power import smallest_caught
from opcheck.core.report import STAGES, AuditReport, CaseReport, OpReport, TensorRow
from opcheck.core.verdict import Verdict
from opcheck.render.kernels import table

HEADERS = ("Tensor", "Ref/golden", "Condition", "Target error", "Threshold", "Gate valid", "Verdict")
MOST_FAILURES = 8  # printed in full for each op; the rest are counted
UNREGISTERED = "verify::"  # ops that only a script knows: no command line runs them again
MOST_NAMES = 12  # shapes and families printed for each op, unless verbose
MOST_LINES = 6  # limitations and gaps printed for each op, unless verbose


def render(report: AuditReport, *, verbosity: int = 0, registry: str = "") -> str:
    """Return the report as text.

    Args:
        verbosity: Below 0 only failures and the summary; above 0 every case, shape, limitation and gap.
        registry: Path of the registry where the command line named one; a failure's own command line names it too.
    """
    blocks = [block for op in report.ops if (block := _op(op, verbosity, registry))]
    if report.kernels is not None and verbosity >= 0:
        blocks.append(table(report.kernels, verbose=verbosity > 0))
    if report.problems:
        blocks.append("\n".join(f"CLOSED  {problem}" for problem in report.problems))
    blocks.append(_summary(report))
    return "\n\n".join(blocks) + "\n"


def _op(op: OpReport, verbosity: int, registry: str) -> str:
    failures = tuple(_failures(op, registry))
    if verbosity < 0:
        return "\n\n".join(failures)
    lines = [f"{op.op}  {op.verdict}"]
    about = "  ".join(filter(None, (op.formula, f"({op.kind})" if op.kind else "", op.place)))
    lines += _indent(about)
    lines += _indent(_table(op))
    lines.append(f"  tested: {_tested(op, verbosity)}")
    if op.coverage.pairs:
        lines.append(f"  {op.coverage if verbosity > 0 else f'pairs covered: {op.coverage.whole}'}")
    lines += _listed("limitation", op.limitations, verbosity)
    lines += _listed("not covered", op.not_covered, verbosity)
    lines += [f"  unproven: {problem}" for problem in op.problems]
    lines += _caught(op, verbosity)
    lines.append(f"  stages: {_stages(op)}")
    if verbosity > 0:
        lines += [f"  {case.verdict}  {case.id}  {case.seconds:.2f} s" for case in op.cases]
    return "\n\n".join(["\n".join(lines), *failures])


def _table(op: OpReport) -> str:
    rows = [(f"{row.tensor} ({row.dtype})", *_figures(row)) for row in worst_rows(op.cases)]
    return tabulate(rows, headers=HEADERS, tablefmt="simple", disable_numparse=True) if rows else ""


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


def _figures(row: TensorRow) -> tuple[str, ...]:
    condition = "-" if math.isnan(row.condition) else f"{row.condition:.1e}"
    return (
        f"{row.reference_error:.1e}",
        condition,
        f"{row.target_error:.1e}",
        f"{row.threshold:.1e}",
        "yes" if row.gate_valid else f"no ({_share(row.reference_relative_error)})",
        str(row.verdict),
    )


def _share(ratio: float) -> str:
    return f"{ratio:.0%}" if ratio <= 10 else "over 1000%"


def _tested(op: OpReport, verbosity: int) -> str:
    cases = [Case.parse(case.id) for case in op.cases]
    if not cases:
        return f"nothing, {op.backend}"
    shapes = dict.fromkeys(" x ".join(map(str, case.dims.values())) or "as given" for case in cases)
    dtypes = dict.fromkeys(case.dtype for case in cases)
    values = dict.fromkeys(case.values for case in cases)
    parts = (
        f"{_count(len(cases), 'case')}, {op.backend}",
        ", ".join(dtypes),
        f"shapes {_some(shapes, verbosity)}",
        f"values {_some(values, verbosity)}",
    )
    return "; ".join(parts)


def _some(names: Iterable[str], verbosity: int) -> str:
    every = list(names)
    shown = every if verbosity > 0 else every[:MOST_NAMES]
    return ", ".join(shown) + (f" and {len(every) - len(shown)} more" if len(shown) < len(every) else "")


def _stages(op: OpReport) -> str:
    states = ", ".join(f"{name} {op.stages.get(name, 'not covered')}" for name in STAGES)
    return f"{states}; {'production ready' if op.production_ready else 'not production ready'}"


def _caught(op: OpReport, verbosity: int) -> Iterator[str]:
    """Say how small an error would have been seen: of the bluntest tensor, or of each one and in which case."""
    caught = smallest_caught(op.cases)
    if verbosity > 0:
        for name, (error, case) in caught.items():
            yield f"  catches: one wrong element of {name}, from {error:.1e} of the scale on, in {case}"
    elif caught:
        name, (error, _) = max(caught.items(), key=lambda item: item[1][0])
        yield f"  catches: one wrong element of any tensor, from {error:.1e} of the scale on; least of {name}"


def _listed(title: str, items: tuple[str, ...], verbosity: int) -> Iterator[str]:
    shown = items if verbosity > 0 else items[:MOST_LINES]
    yield from (f"  {title}: {item}" for item in shown)
    if len(shown) < len(items):
        yield f"  {title}: {len(items) - len(shown)} more (-v lists them)"


def _failures(op: OpReport, registry: str) -> Iterator[str]:
    """Yield what is wrong, worst first; the same finding on several cases is told once, on its smallest case."""
    pairs = failing(op)
    counts = Counter(_kind(item) for _, item in pairs)
    told: set[tuple[str, str]] = set()
    for case, item in pairs:
        kind = _kind(item)
        if kind in told:
            continue
        if len(told) == MOST_FAILURES:
            yield f"{len(counts) - MOST_FAILURES} more kinds of failure in {op.op}; --format json lists them all"
            return
        told.add(kind)
        yield failure(case, item, more=counts[kind] - 1, registry=registry)


def _kind(item: Finding) -> tuple[str, str]:
    return item.check, f"{item.tensor} {item.law if item.check == 'library' else ''} {item.verdict}"


def failure(case: CaseReport, item: Finding, *, more: int = 0, registry: str = "") -> str:
    """Return one finding in full: the law, measured against allowed, where, and how to run it again."""
    lines = [f"{item.verdict} {item.check}  {case.id}  {item.tensor}", f"  {item.law}", f"  {item.detail}"]
    if item.looks_like:
        lines.append(f"  looks like: {item.looks_like}")
    if more:
        lines.append(f"  and in {_count(more, 'more case')}")
    if not case.id.startswith(UNREGISTERED):
        lines.append(f"  again: {again(case, item, registry)}")
    return "\n".join(lines)


def _summary(report: AuditReport) -> str:
    counts = Counter(op.verdict for op in report.ops)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]) or "nothing audited"
    cases = sum(len(op.cases) for op in report.ops)
    ending = "" if report.complete else "; ended early: this is what was finished"
    gate = "may merge" if report.ok else "may not merge"
    audited = f"{_count(len(report.ops), 'op')}, {_count(cases, 'case')}"
    return f"{audited}: {verdicts}; {gate} (exit {report.exit_status}){ending}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _indent(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
