"""What sanitizers of GPU code say: NVIDIA's compute-sanitizer and Triton's instrumentation, read from their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

SANITIZE = "sanitize"  # the check
MEMORY_TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")  # of compute-sanitizer
MODES = ("consan", "gsan", "fpsan")  # of Triton, TRITON_INSTRUMENTATION_MODE
TOOLS = (*MEMORY_TOOLS, *MODES)

Grade = Literal["error", "warning"]
Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitize:
    """Run the target once in a process of its own under a tool, forward and backward, for at most so many seconds."""

    tool: str
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report of a tool; equal ones of other threads are counted.

    Attributes:
        kind: The tool's own first words: `"Invalid __global__ write of size 4 bytes"`.
        kernel, where: The kernel, and the line of its source where the binary knows it.
        other: Of a race, the other access.
        address: Of the access, in hexadecimal.
        near: What the tool says of the address.
        size: Bytes of the access, 0 where that is not told.
    """

    kind: str
    grade: Grade = "error"
    kernel: str = ""
    where: str = ""
    other: str = ""
    thread: Place | None = None
    block: Place | None = None
    address: str = ""
    near: str = ""
    size: int = 0
    count: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        """What reports that differ only in thread and address share."""
        return self.grade, self.kind, self.kernel, self.where, self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitized:
    """Answer to `Sanitize`.

    Attributes:
        launches: How often each Triton kernel was launched; what else ran is not counted.
        reports: What the tool reported, each once.
        errors: How many errors the tool counted, those that it did not print included.
        problem: Why the tool came to no result, empty where it did.
        note: What limits the answer, empty where nothing does.
    """

    tool: str
    launches: Mapping[str, int] = field(default_factory=dict)
    reports: tuple[Report, ...] = ()
    errors: int = 0
    problem: str = ""
    note: str = ""


_PREFIX = "========="
_SUMMARY = re.compile(r"ERROR SUMMARY: (?P<errors>[\d,]+) errors?")
_RACES = re.compile(r"RACECHECK SUMMARY: [\d,]+ hazards? displayed \((?P<errors>[\d,]+) errors?")
_FAILED = ("Internal Sanitizer Error", "Error: Target application terminated before", "Error: No attachable process")
_NOISE = (
    "COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY", "Target application returned",
    "Error: process didn't terminate", "Saved host backtrace", "Warning: ", *_FAILED,
)  # fmt: skip
_HOST = re.compile(r" Saved host backtrace.*| Host Frame:.*", re.DOTALL)
_SIZE = re.compile(r"of size (\d+)")
_THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_ADDRESS = re.compile(r"\b(?:Address|Access to|Access at) (?P<address>0x[0-9a-fA-F]+)(?P<near>.*?)(?= Device Frame|$)")
_HAZARDS = re.compile(r"\[([\d,]+) hazards?\]")
_AT = r"(?P<kernel>.+?)[+:]0x[0-9a-fA-F]+(?: in (?P<where>.+?:\d+))?"
_SITE = re.compile(rf"\bat {_AT}(?= |$)")
_OLD_SITE = re.compile(
    r"\bat 0x[0-9a-fA-F]+ in (?:(?P<where>\S+:\d+)[: ])?(?P<kernel>.+?)(?= by thread| and is | Address|$)"
)
_RACE = re.compile(
    rf"Race reported between (?P<first>\w+) access at {_AT} and (?P<second>\w+) access at "
    rf"(?P<rest>.+?)(?: \[[\d,]+ hazards?\]|$)"
)
_ASSERTION = re.compile(
    r"^(?P<file>[^\n]*?):(?P<line>\d+): (?P<kernel>[^\n]*?): block: \[(\d+),(\d+),(\d+)\], "
    r"thread: \[(\d+),(\d+),(\d+)\] Assertion `(?P<text>[^\n]*)` failed",
    re.MULTILINE,
)


def read_log(text: str) -> tuple[tuple[Report, ...], int, str]:
    """Read compute-sanitizer's text: the reports, the number of errors, and why there is no result, if there is none.

    The format is that of NVIDIA's manual, chapters "Understanding Memcheck Errors" and "Example Use of ...".
    """
    summary = _SUMMARY.search(text) or _RACES.search(text)
    reports = _grouped(_report(lines) for lines in _records(text))
    errors = int(summary["errors"].replace(",", "")) if summary else sum(item.grade == "error" for item in reports)
    if summary and not errors:  # what looks like a report is a remark of the tool
        reports = tuple(item for item in reports if item.grade == "warning")
    failed = next((line.strip(" =") for line in text.splitlines() if line.strip(" =").startswith(_FAILED)), "")
    if failed or (summary is None and not reports):
        return reports, errors, failed or "the tool printed no summary"
    return reports, errors, ""


def read_assertions(text: str) -> tuple[Report, ...]:
    """Read the failed device assertions in what a process printed: consan and gsan report by them."""
    found = []
    for match in _ASSERTION.finditer(text):
        numbers = [int(item) for item in match.groups()[3:9]]
        found.append(
            Report(
                kind=match["text"], kernel=match["kernel"], where=f"{match['file']}:{match['line']}",
                block=(numbers[0], numbers[1], numbers[2]), thread=(numbers[3], numbers[4], numbers[5]),
            )
        )  # fmt: skip
    return _grouped(found)


def _records(text: str) -> Iterator[list[str]]:
    """Yield each report's lines: the first has one space behind the prefix, the others more."""
    record: list[str] = []
    for line in text.splitlines():
        if not line.startswith(_PREFIX):
            continue
        body = line[len(_PREFIX) :]
        told = body.strip()
        if told and not body.startswith("  ") and not (told.startswith(_NOISE) and "Race reported" not in told):
            if record:
                yield record
            record = [told]
        elif told and body.startswith("  ") and record:
            record.append(told)
        elif record:
            yield record
            record = []
    if record:
        yield record


def _report(lines: list[str]) -> Report:
    text = _HOST.sub("", " ".join(lines))
    if race := _RACE.search(text):
        hazards = _HAZARDS.search(text)
        other = _SITE.search(f"at {race['rest']}")
        place = other["where"] or other["kernel"] if other else race["rest"]
        return Report(
            kind=f"Race between a {race['first'].lower()} and a {race['second'].lower()} access",
            grade="warning" if text.startswith("Warning") else "error",
            kernel=race["kernel"], where=race["where"] or "", other=f"{race['second'].lower()} at {place}",
            count=int(hazards[1].replace(",", "")) if hazards else 1,
        )  # fmt: skip
    site = _OLD_SITE.search(text) or _SITE.search(text)
    thread, size, address = _THREAD.search(text), _SIZE.search(lines[0]), _ADDRESS.search(text)
    numbers = [int(item) for item in thread.groups()] if thread else []
    return Report(
        kind=lines[0].rstrip("."),
        kernel=site["kernel"].strip() if site else "",
        where=(site["where"] or "") if site else "",
        thread=(numbers[0], numbers[1], numbers[2]) if numbers else None,
        block=(numbers[3], numbers[4], numbers[5]) if numbers else None,
        address=address["address"] if address else "",
        near=" ".join(address["near"].split()) if address else "",
        size=int(size[1]) if size else 0,
    )


def _grouped(reports: Iterator[Report] | list[Report]) -> tuple[Report, ...]:
    found: dict[tuple[str, ...], Report] = {}
    for item in reports:
        before = found.get(item.key)
        found[item.key] = item if before is None else replace(before, count=before.count + item.count)
    return tuple(found.values())
