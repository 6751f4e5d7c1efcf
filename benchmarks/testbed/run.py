"""Audit kernels that nobody here wrote, and print one table: `make testbed`.

Each package has a registry in `registries/`; its report is written as soon as it is there. `findings.toml` says of each
known failure what it is; the exit status is 1 where something failed, or could not be judged, that is not in it.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# The registry of each package, and the distribution that it is about; what takes longest on a GPU is last.
PACKAGES = {
    "liger": "liger-kernel",
    "aten": "torch",
    "torchnorm": "torchnorm",
    "conch": "conch-triton-kernels",
    "moe_ops": "moe-ops",
    "cce": "cut-cross-entropy",
    "fla": "fla-core",
}
BAD = ("FAIL", "INCONCLUSIVE")
LONGEST = 90  # characters of a finding in the table
HEADERS = ("package", "op", "verdict", "cases", "s", "known as", "first finding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A failure that has been looked into: its name in docs/findings.md, and where it shows."""

    id: str
    op: str
    check: str
    tensor: str = "*"
    where: str = "*"
    backend: str = "*"

    def covers(self, op: str, check: str, tensor: str, case: str, backend: str) -> bool:
        """Say whether a finding is this one; all fields but the id may be globs."""
        pairs = ((op, self.op), (check, self.check), (tensor, self.tensor), (backend, self.backend))
        return all(fnmatchcase(value, pattern) for value, pattern in pairs) and self.where.strip("*") in case


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    package: str
    op: str
    verdict: str
    cases: int = 0
    seconds: float = 0.0
    known: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    first: str = ""

    @property
    def cells(self) -> tuple[object, ...]:
        """Its cells, in the order of `HEADERS`."""
        known = ", ".join((*self.known, *(("not known",) if self.unexplained else ())))
        first = self.first if len(self.first) <= LONGEST else self.first[: LONGEST - 4].rsplit(" ", 1)[0] + " ..."
        return (self.package, self.op, self.verdict, self.cases, f"{self.seconds:.0f}", known, first)


@dataclass(slots=True)
class Progress:
    """What is known so far; printed last, whatever happened before."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def main(argv: list[str] | None = None) -> int:
    """Read the arguments, audit package by package, write the JSON, print the table; return the exit status."""
    arguments = parser().parse_args(argv)
    chosen = arguments.only or list(PACKAGES)
    arguments.out.mkdir(parents=True, exist_ok=True)
    known = load_known(HERE / "findings.toml")
    progress, deadline = Progress(), time.monotonic() + arguments.seconds
    for name in chosen:
        left = deadline - time.monotonic()
        try:
            audit_package(name, arguments, left, known, progress)
        except KeyboardInterrupt:
            progress.problems.append(f"interrupted in {name}")
            break
        write(arguments.out / "table.json", progress)
    write(arguments.out / "table.json", progress)
    print(table(progress))
    return 1 if progress.problems or any(row.unexplained for row in progress.rows) else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    made.add_argument("--only", action="append", choices=tuple(PACKAGES), metavar="PACKAGE", help=", ".join(PACKAGES))
    made.add_argument("--level", default="quick", help="opcheck's (default: quick)")
    made.add_argument("--budget", type=float, default=3.0, help="seconds an op for cases that combine options")
    made.add_argument("-n", dest="workers", type=int, default=0, help="workers (default: the cores)")
    made.add_argument("--seconds", type=float, default=3600.0, help="the whole may take; the rest is left out then")
    made.add_argument("--timeout", type=float, default=120.0, help="longest silence of a worker, in seconds")
    made.add_argument("--out", type=Path, default=ROOT / ".testbed", help="folder of the reports")
    return made


def audit_package(name: str, arguments, left: float, known: list[Known], progress: Progress) -> None:
    """Audit one package in a process of its own; add its rows, or why there are none."""
    try:
        version = importlib.metadata.version(PACKAGES[name])
    except importlib.metadata.PackageNotFoundError:
        progress.problems.append(f"{name}: {PACKAGES[name]} is not installed; make testbed does it")
        return
    if left <= 0:
        progress.problems.append(f"{name}: no time was left for it")
        return
    print(f"{PACKAGES[name]} {version} ...", file=sys.stderr, flush=True)
    report, log = arguments.out / f"{name}.json", arguments.out / f"{name}.txt"
    report.unlink(missing_ok=True)
    status = run_opcheck(name, arguments, left, report, log)
    if not report.is_file():
        progress.problems.append(f"{name}: no report (exit status {status}); the last of its log: {last_line(log)}")
        return
    read = json.loads(report.read_text())
    progress.rows += rows_of(read, f"{PACKAGES[name]} {version}", arguments.backend, known)
    progress.problems += [f"{name}: {text}" for text in read.get("problems", ())]
    if not read["complete"]:
        progress.problems.append(f"{name}: not all of its cases ran within {left:.0f} s")


def run_opcheck(name: str, arguments, left: float, report: Path, log: Path) -> int:
    """Run `opcheck audit` on a registry; out of time, interrupt it, so that it reports what it has."""
    command = [
        sys.executable, "-m", "opcheck", "audit", "--all", "--registry", str(HERE / "registries" / f"{name}.toml"),
        "--backend", arguments.backend, "--level", arguments.level, "--budget", str(arguments.budget),
        "-n", str(arguments.workers or "auto"), "--timeout", str(arguments.timeout), "-q",
        "--format", "table", "--format", f"json={report}",
    ]  # fmt: skip
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT)
        try:
            return process.wait(timeout=left)
        except subprocess.TimeoutExpired:
            process.terminate()
        try:
            return process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def load_known(path: Path) -> list[Known]:
    """Read the failures that have been looked into."""
    found = []
    for entry in tomllib.loads(path.read_text()).get("finding", ()):
        shows = entry["shows"] if isinstance(entry["shows"], list) else [entry["shows"]]
        found += [Known(id=entry["id"], **place) for place in shows]
    return found


def rows_of(report: dict, package: str, backend: str, known: list[Known]) -> list[Row]:
    """Return a row for each op of a report."""
    return [row_of(op, package, backend, known) for op in report["ops"]]


def row_of(op: dict, package: str, backend: str, known: list[Known]) -> Row:
    """Return an op's row: which of its failures are known, and the first of all."""
    names, unexplained, first = [], [], ""
    for case in op["cases"]:
        for item in case["findings"]:
            if item["verdict"] not in BAD or item["waived"]:
                continue
            text = f"{item['check']}, {item['tensor']}: {item['detail']}"
            first = first or text
            place = (op["op"], item["check"], item["tensor"], case["id"], backend)
            found = next((one.id for one in known if one.covers(*place)), "")
            (names if found else unexplained).append(found or f"{case['id']}: {text}")
    unexplained += op["problems"]
    return Row(
        package=package, op=op["op"], verdict=op["verdict"], cases=len(op["cases"]),
        seconds=sum(case["seconds"] for case in op["cases"]), known=tuple(sorted(set(names))),
        unexplained=tuple(unexplained), first=(first or next(iter(op["problems"]), "")).replace("\n", " "),
    )  # fmt: skip


def table(progress: Progress) -> str:
    """Return the table, what is not explained, and one line of totals."""
    from tabulate import tabulate

    lines = [tabulate([row.cells for row in progress.rows], headers=HEADERS, tablefmt="github")]
    lines += [f"not known: {text}" for row in progress.rows for text in row.unexplained[:3]]
    lines += [f"problem: {text}" for text in progress.problems]
    bad = [row for row in progress.rows if row.verdict in BAD]
    lines.append(
        f"{len(progress.rows)} ops, {sum(row.cases for row in progress.rows)} cases; {len(bad)} of the ops fail or "
        f"cannot be judged, {sum(bool(row.unexplained) for row in progress.rows)} of them for reasons not known"
    )
    return "\n".join(lines)


def write(path: Path, progress: Progress) -> None:
    """Write what is known so far."""
    keys = ("package", "op", "verdict", "cases", "seconds", "known", "unexplained", "first")
    rows = [{key: getattr(row, key) for key in keys} for row in progress.rows]
    path.write_text(json.dumps({"rows": rows, "problems": progress.problems}, indent=1) + "\n")


def last_line(log: Path) -> str:
    """Return the last line of a log that is not empty."""
    return next((line for line in reversed(log.read_text(errors="replace").splitlines()) if line.strip()), "nothing")


if __name__ == "__main__":
    sys.exit(main())
