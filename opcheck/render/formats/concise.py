"""One line for each thing that is wrong, `path:line: op check verdict message`, for editors and grep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from opcheck.core.report import AuditReport
from opcheck.render.plain import line
from opcheck.render.remarks import Remark, others, remarks, summary
from opcheck.render.view import View, spot

MOST = 400  # characters of one message


def render(report: AuditReport, view: View) -> str:
    """Return a line for each remark and the summary; verbose, the same finding is told on each of its cases."""
    lines = [_line(item, view) for item in _each(report, view) if not item.waived]
    if view.verbosity >= 0:
        lines.append(summary(report))
    return "".join(f"{item}\n" for item in lines)


def _each(report: AuditReport, view: View) -> Iterable[Remark]:
    return remarks(report, view) if view.verbosity <= 0 else _by_case(report, view)


def _by_case(report: AuditReport, view: View) -> Iterator[Remark]:
    yield from remarks(replace(report, ops=()), view)
    for op in report.ops:
        for part in (*(replace(op, cases=(case,), problems=()) for case in op.cases), replace(op, cases=())):
            yield from remarks(replace(report, ops=(part,), problems=()), view)


def _line(item: Remark, view: View) -> str:
    at = str(spot(item.place, view) or item.place)
    said = f"{item.tensor}: {item.detail}" if item.tensor else item.detail
    where = f"  {item.case}{others(item.more)}" if item.case else ""
    what = f"{line(item.op, MOST) or 'registry'} {line(item.check, MOST)} {item.verdict}"
    return f"{line(at, MOST)}: {what} {line(said, MOST)}{line(where, MOST) and f'  [{line(where, MOST)}]'}"
