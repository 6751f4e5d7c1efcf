"""Markdown for a comment on a pull request: a table of the ops, and behind each one's name its failures.

GitHub takes at most 65,536 characters; `page` takes another bound, for a job's summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opcheck.core.brief import worst_rows
from opcheck.core.report import AuditReport, OpReport
from opcheck.core.verdict import Verdict
from opcheck.render.plain import clean, cut, line
from opcheck.render.remarks import GATE, Remark, counted, remarks, summary
from opcheck.render.text import HEADERS, figures
from opcheck.render.view import View

MOST = 65_536  # bytes: no more characters than that, however they are counted
MARK = "<!-- opcheck -->"  # by which a script finds the comment that it wrote before
MOST_FAILURES = 8  # of an op
MOST_NAMED = 200  # problems, ops: rows of one list
LONGEST_CELL = 200  # characters
LONGEST = 1_200  # of a failure told in full
COLUMNS = ("Op", "Verdict", "Cases", "Wrong")

#: Every character that means something in GitHub's Markdown or in HTML, or makes a mention, a reference or an emoji.
_MARKUP = re.compile(r"[&<>\"'`*_\[\]()|\\~$@#:!{}=+-]")
_BAD = (Verdict.FAIL, Verdict.INCONCLUSIVE)


def render(report: AuditReport, view: View) -> str:
    """Return the comment."""
    return page(report, view, MOST)


def page(report: AuditReport, view: View, most: int) -> str:
    """Return the report in at most so many bytes of UTF-8: what closes the gate comes first and stays longest."""
    parts = list(_parts(report, view))
    ending = "\nThe rest is left out here; the formats table and json have it.\n"
    kept, room = "", most - len(ending.encode())
    for at, part in enumerate(parts):
        if len(part.encode()) > room:
            return kept + (cut(part, room) if at == 0 else "") + ending
        kept, room = kept + part, room - len(part.encode())
    return kept


def code(text: str, most: int = LONGEST_CELL) -> str:
    """Return text from elsewhere so that it is shown as it is, in any line of Markdown and any cell of a table."""
    shown = _MARKUP.sub(lambda match: f"&#{ord(match[0])};", line(text, most))
    return f"<code>{shown}</code>" if shown else ""


def fenced(text: str) -> str:
    """Return text as a block of code, whatever backticks it has."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}\n"


def _parts(report: AuditReport, view: View) -> Iterator[str]:
    """Yield pieces that can each be left out with all that follow."""
    found = remarks(report, view)
    yield f"{MARK}\n### opcheck: {'may merge' if report.ok else 'may not merge'}\n\n{summary(report)}\n"
    yield from _rows("**Closed:**", [f"- {code(item.detail, 500)}" for item in found if item.check == GATE])
    ops = sorted(report.ops, key=lambda op: -op.verdict.severity)
    wrong = [op for op in ops if op.verdict in _BAD]
    if wrong:
        yield from _table(COLUMNS, [_row(op, found) for op in wrong[:MOST_NAMED]])
        yield from _left(len(wrong) - MOST_NAMED, "op")
    for op in wrong:
        yield _details(op, [item for item in found if item.op == op.op and item.check != GATE and not item.waived])
    if right := [op for op in ops if op.verdict not in _BAD]:
        table = "".join(_table(COLUMNS, [_row(op, found) for op in right[:MOST_NAMED]]))
        yield f"\n<details><summary>{counted(len(right), 'op')} without a failure</summary>\n{table}\n</details>\n"
        yield from _left(len(right) - MOST_NAMED, "op")
    if waived := [item for item in found if item.waived]:
        lines = [f"- {code(item.title)}: {code(item.waived)}" for item in waived]
        yield from _rows("Waived:", lines)


def _row(op: OpReport, found: tuple[Remark, ...]) -> tuple[str, ...]:
    wrong = dict.fromkeys(item.check for item in found if item.op == op.op and item.check != GATE and not item.waived)
    return code(op.op), str(op.verdict), str(len(op.cases)), code(", ".join(wrong))


def _details(op: OpReport, found: list[Remark]) -> str:
    shown = [fenced(clean(f"{item.title}\nat {item.place}\n{item.message}", LONGEST)) for item in found[:MOST_FAILURES]]
    shown += list(_left(len(found) - MOST_FAILURES, "kind of failure", "kinds of failure"))
    rows = [(code(f"{row.tensor} ({row.dtype})"), *figures(row)) for row in worst_rows(op.cases)[:MOST_NAMED]]
    inner = "\n".join([*shown, "".join(_table(HEADERS, rows)) if rows else ""])
    return f"\n<details><summary>{code(op.op)}: {op.verdict}</summary>\n\n{inner}\n</details>\n"


def _table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield the head of a table, and each of its rows: a table may end early."""
    yield f"\n| {' | '.join(headers)} |\n| {' | '.join('---' for _ in headers)} |\n"
    yield from (f"| {' | '.join(row)} |\n" for row in rows)


def _rows(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n{title}\n\n" + "".join(f"{item}\n" for item in lines[:MOST_NAMED])
        yield from _left(len(lines) - MOST_NAMED, "line")


def _left(number: int, noun: str, nouns: str = "") -> Iterator[str]:
    if number > 0:
        yield f"\n{number} more {noun if number == 1 else nouns or f'{noun}s'}\n"
