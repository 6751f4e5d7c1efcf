"""Write down each op as it is finished, and say which ops an earlier audit has answered for."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opcheck.core.evidence import Described, Evidence, asked, asked_of, digest, key_of
from opcheck.core.policy import Policy, Waiver
from opcheck.core.report import OpReport
from opcheck.declared.file import document
from opcheck.evidence.answers import Answered, Answers, Asked, again_for, told
from opcheck.evidence.here import DRIVER, Here
from opcheck.evidence.includes import included
from opcheck.evidence.store import Store
from opcheck.session.described import Registry
from opcheck.session.options import Options
from opcheck.session.summing import again, combined, limits, most_used


@dataclass(slots=True, kw_only=True)
class Recorder:
    """The evidence of one audit.

    Attributes:
        started: When the session began, in nanoseconds: what is younger may have been edited under its hands.
        checks: Names of the checks that are put to every case.
        narrowed: Whether the options leave out cases or checks.
        tell: Told what the user should know, as sentences.
    """

    options: Options
    policy: Policy
    registry: Registry
    backend: str
    store: Store
    started: int
    checks: tuple[str, ...]
    narrowed: bool
    tell: Callable[[str], None]
    _here: Here = field(init=False)
    _document: Mapping[str, Any] = field(init=False)
    _read: dict[str, set[str]] = field(init=False, default_factory=lambda: defaultdict(set))
    _died: set[str] = field(init=False, default_factory=set)
    _told: str = field(init=False, default="")

    def __post_init__(self) -> None:
        path = Path(self.policy.path)
        self._here, self._document = Here(path.parent), document(path)
        # Before anything runs: what is hashed later may not be what ran.
        own = (file for op in self._rests["ops"] for file in self._files(op))
        for name in {path.name, *self._rests["files"], *own}:
            self._here.stat(name)
            self._here.digest(name)
        self._describe()

    def answered(self, ops: Iterable[str]) -> dict[str, Answered]:
        """Return the ops that need not run again; tell of them, and why those that were audited before must."""
        if self.options.fresh or self.narrowed or self.options.coverage:
            return {}
        options = self.options
        wanted = Asked(backend=self.backend, level=options.level, seed=options.seed, budget=options.budget)
        answers = Answers(self.store, self._here, self._document, wanted)
        items = {op: answers.of(op, self._files(op)) for op in ops}
        found = {op: item for op, item in items.items() if isinstance(item, Answered)}
        for reason in dict.fromkeys(item for item in items.values() if isinstance(item, str) and item):
            self.tell(again_for(reason, [op for op, item in items.items() if item == reason]))
        if found:
            self.tell(told([item.line for item in found.values()], len(items) - len(found)))
        return found

    def heard(self, op: str, read: Sequence[str] | None) -> None:
        """Take in what a worker read of the project for an op, or (None) that it died over it."""
        if read is None:
            self._died.add(op)
        else:
            self._read[op].update(read)

    def finish(
        self, report: OpReport, *, waivers: Collection[Waiver], unlearnt: str, reached: Mapping[str, str]
    ) -> None:
        """Write down an op all of whose cases are finished."""
        op = report.op
        files = {*self._files(op), *self._read[op]} - {Path(self.policy.path).name}
        files |= included(self._here.root, files)
        if not (files or self._rests["ops"][op]["distributions"]):
            self.tell(f"the source of {op} lies in no file and belongs to no distribution: no evidence of it is kept")
            return
        if changed := self._changed(files):
            self.tell(f"{changed} was changed while {op} was audited: no evidence of it is kept")
            return
        environment, options = self.registry.environment, self.options
        line = Evidence(
            op=op,
            backend=self.backend,
            device=environment["device"],
            capability=environment.get("capability", ""),
            level=options.level,
            seeds=(options.seed,),
            budget=options.budget,
            checks=self.checks,
            whole=not self.narrowed,
            verdict=report.verdict.value,
            exit_ok=report.verdict in self.policy.gate.accept,
            limitations=report.limitations,
            problems=report.problems,
            waivers=tuple(sorted(map(str, waivers))),
            again=again(report, died=op in self._died, unlearnt=unlearnt),
            thresholds=limits(self.policy, op, self.checks),
            used=most_used(self.policy, report),
            coverage={"pairs": str(report.coverage.whole), **reached},
            finished=_now(),
            **combined(report),
        )
        manifest = self._here.manifest(
            files,
            distributions=(*self._rests["ops"][op]["distributions"], *self._driver),
            asked=asked_of(line, self._document),
        )
        line = replace(line, manifest=manifest, key=key_of(manifest, line.backend, line.capability))
        self._put(line, None if self.narrowed else report)

    def _describe(self) -> None:
        """Write down what the registry holds; where something did not import, the next audit must look again."""
        registry = self.registry
        if registry.failures or self._changed(self._rests["files"]):
            return
        manifest = self._here.manifest(
            self._rests["files"],
            folders=self._rests["folders"],
            distributions=self._driver,
            asked=asked(self._document, "", level="", seeds=(), budget=None, checks=(), case_ids=()),
        )
        capability = registry.environment.get("capability", "")
        line = Described(
            backend=self.backend,
            device=registry.environment["device"],
            capability=capability,
            ops={name: about["place"] for name, about in registry.ops.items()},
            environment=registry.environment,
            policy=digest(self._document),
            finished=_now(),
            manifest=manifest,
            key=key_of(manifest, self.backend, capability),
        )
        self._put(line)

    def _put(self, line: Evidence | Described, report: OpReport | None = None) -> None:
        self.store.put(line, report)
        self._tell_problem()

    def _tell_problem(self) -> None:
        if self.store.problem != self._told:
            self._told = self.store.problem
            self.tell(self._told)

    def _changed(self, files: Iterable[str]) -> str:
        """Return a file that may not be what ran, empty where all are."""
        now = Here(self._here.root)
        for path in (Path(self.policy.path).name, *sorted(files)):
            stat = now.stat(path)
            if stat is not None and (stat[1] > self.started or stat != self._here.stat(path)):
                return path
        return "opcheck itself" if now.edited > self.started else ""

    @property
    def _rests(self) -> Mapping[str, Any]:
        assert self.registry.rests is not None
        return self.registry.rests

    def _files(self, op: str) -> frozenset[str]:
        return frozenset(self._rests["ops"][op]["files"])

    @property
    def _driver(self) -> tuple[str, ...]:
        return (DRIVER,) if self.backend == "cuda" else ()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
