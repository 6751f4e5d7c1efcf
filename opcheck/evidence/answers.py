"""Answer an audit from evidence: op by op, or as a whole without starting anything."""

from __future__ import annotations

import datetime
import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opcheck.backends.present import gpus
from opcheck.core.evidence import Described, Evidence, digest
from opcheck.core.gate import gate, registry_problems, waiver_problems
from opcheck.core.policy import GatePolicy, Level, Waiver
from opcheck.core.report import AuditReport, OpReport
from opcheck.core.select import select_ops
from opcheck.core.verdict import Verdict
from opcheck.errors import UnknownOp
from opcheck.evidence.here import Here
from opcheck.evidence.standing import fallen
from opcheck.evidence.store import Store

_MOST = 3  # names in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an audit asks that evidence must have answered.

    Attributes:
        backend: `"cpu"` or `"cuda"`.
        brief: Whether no more of a report is needed than its printed form takes.
    """

    backend: str
    level: Level = "standard"
    seed: int = 0
    budget: float | None = None
    brief: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The report of an op as an earlier audit made it, and the line that stands for it."""

    report: OpReport
    line: Evidence


class Answers:
    """Which ops an audit need not run.

    Args:
        document: `registry.toml` as `tomllib` reads it.
    """

    def __init__(self, store: Store, here: Here, document: Mapping[str, Any], asked: Asked) -> None:
        self._store, self._here, self._document, self._asked = store, here, document, asked

    def described(self) -> Described | None:
        """Return what the registry holds, None where its modules have to be imported to know."""
        for line in self._store.described(self._asked.backend):
            if self._present(line.device) and not fallen(line, self._here, self._document):
                return line
        return None

    def of(self, op: str, imported: frozenset[str] = frozenset()) -> Answered | str:
        """Return the answer for an op, or why there is none; empty where it was never audited so.

        Args:
            imported: The project's files that its modules are now known to import.
        """
        asked = self._asked
        why = ""
        for line in self._store.evidence(op, asked.backend, asked.level):
            if (line.seeds, line.budget) != ((asked.seed,), asked.budget) or not self._present(line.device):
                continue
            reason = self._reason(line, imported)
            report = None if reason else self._store.report(line, whole=not asked.brief)
            if report is not None:
                return Answered(report=report, line=line)
            why = why or reason or "its report is gone"
        return why

    def _reason(self, line: Evidence, imported: frozenset[str]) -> str:
        if line.again:
            return line.again
        if line.verdict == Verdict.INCONCLUSIVE.value and any(item.concerns(line.op) for item in self.waivers):
            return "it was inconclusive, and a waiver may cover that"
        if reason := fallen(line, self._here, self._document):
            return reason
        new = sorted(imported - line.manifest.files.keys())
        return f"it now imports {new[0]}" if new else ""

    def _present(self, device: str) -> bool:
        """Say whether a device is one of those here: such a GPU, or a CPU that runs the same programs."""
        return device in gpus() if self._asked.backend == "cuda" else device.partition(" ")[0] == platform.machine()

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The waivers of the document."""
        return tuple(Waiver(**item) for item in self._document.get("waiver", ()))


def answer(answers: Answers, document: Mapping[str, Any], path: Path, wanted: tuple[str, ...], level: Level
           ) -> tuple[AuditReport, tuple[Evidence, ...]] | None:  # fmt: skip
    """Return the report of an audit that need not run, with the evidence of which it is made; else None.

    It is None too where the command line or the registry is wrong in any way: the audit itself says how.

    Args:
        document: What `path` holds; not checked, as only one that an audit has accepted is answered for.
        wanted: Names and globs of ops; empty for all.
    """
    described = answers.described()
    if described is None or described.policy != digest(document):
        return None
    declared = document.get("op", {})
    try:
        names = select_ops(wanted, sorted(declared.keys() & described.ops.keys()))
    except UnknownOp:
        return None
    found = []
    for name in names:
        item = answers.of(name)
        if not isinstance(item, Answered):
            return None
        found.append(item)
    problems = registry_problems(declared, described.ops, (), document["registry"]["modules"])
    whole = set(names) == set(declared)
    problems += waiver_problems(answers.waivers, datetime.date.today(), set(), whole=whole)
    result = gate((item.report for item in found), _policy(document), problems=problems)
    report = AuditReport(
        ops=tuple(item.report for item in found),
        verdict=result.verdict,
        exit_status=int(result.exit_status),
        environment=described.environment,
        policy_digest=hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest(),
        problems=result.problems,
        level=level,
    )
    return report, tuple(item.line for item in found)


def _policy(document: Mapping[str, Any]) -> GatePolicy:
    accept = document.get("gate", {}).get("accept")
    return GatePolicy(accept=frozenset(map(Verdict, accept))) if accept else GatePolicy()


def again_for(reason: str, ops: Sequence[str]) -> str:
    """Return the sentence that says why ops are audited again."""
    more = f" and {len(ops) - _MOST} more" if len(ops) > _MOST else ""
    return f"{', '.join(ops[:_MOST])}{more} {'is' if len(ops) == 1 else 'are'} audited again: {reason}"


def told(lines: Sequence[Evidence], audited: int) -> str:
    """Return the sentence that says what was answered from evidence, and of when."""
    times = sorted({line.finished for line in lines})
    when = times[0] if len(times) == 1 else f"{times[0]} to {times[-1]}"
    total = len(lines) + audited
    share = f"{len(lines)} of {total} ops " if audited else ""
    return f"{share}from the evidence of {when}; --fresh audits again"
