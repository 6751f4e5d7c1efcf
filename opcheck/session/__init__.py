"""An audit from start to end: read the policy, describe the registry, hand the cases to workers, gate the result."""

from __future__ import annotations

import datetime
import difflib
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opcheck.backends.present import backend_of
from opcheck.checks import all_checks, limits_by_check
from opcheck.checks.protocol import Subject, inapplicable
from opcheck.core.building import COMPILE
from opcheck.core.case import Case
from opcheck.core.cases import Plan, Planned, plan_cases
from opcheck.core.facts import Facts
from opcheck.core.following import following
from opcheck.core.gate import apply_waivers, gate, registry_problems, waiver_problems
from opcheck.core.policy import Policy, Waiver
from opcheck.core.reached import shortfalls
from opcheck.core.report import AuditReport, CaseReport, OpReport
from opcheck.core.sanitizer import Sanitize
from opcheck.core.select import matcher, select_ops
from opcheck.declared import load_all
from opcheck.declared.plugins import digest_of_files, plugins, registries
from opcheck.errors import OpcheckError, UnknownOp
from opcheck.evidence.store import Store
from opcheck.run.isolate import Pool
from opcheck.session.album import Album
from opcheck.session.building import build_cases, merged, to_build
from opcheck.session.covered import Covered
from opcheck.session.described import Registry, describe, workers_environment
from opcheck.session.fitting import fit
from opcheck.session.handout import run_cases
from opcheck.session.learning import learn
from opcheck.session.options import Options, Progress, Silent
from opcheck.session.recording import Recorder
from opcheck.session.reporting import op_report
from opcheck.session.sanitizing import GRACE, sanitizing, small
from opcheck.worker import PRELOAD

__all__ = ["Options", "Progress", "Session", "Silent", "audit", "workers_environment"]


@dataclass(slots=True, kw_only=True)
class Session:
    """One open session: the policy, the worker pool, and what the registry holds.

    Attributes:
        skip: Modules that end the process that imports them.
        payload: What every worker is told at its start.
        facts: What a run of each planned op showed about it; `unlearnt` says why where that is nothing.
        store: The evidence of earlier audits, to which this one adds; None where none is kept.
        started: When it was opened, in nanoseconds.

    Raises:
        PolicyError, UnknownOp, BadCase: The configuration or the command line is wrong.
        WorkerError: The workers do not start.
    """

    options: Options
    policy: Policy
    backend: str
    pool: Pool
    registry: Registry
    payload: Mapping[str, Any]
    skip: list[str] = field(default_factory=list)
    facts: dict[str, Facts] = field(default_factory=dict)
    unlearnt: dict[str, str] = field(default_factory=dict)
    store: Store | None = None
    started: int = 0

    @classmethod
    def open(cls, options: Options) -> Session:
        """Read the policy, start the workers and have one of them describe the registry."""
        started = time.time_ns()
        _refuse_unknown_checks(options.checks)
        backend = backend_of(options.backend)
        if options.coverage and backend != "cpu":
            raise OpcheckError(f"--coverage records interpreted kernels, and on {backend} none is; give --backend cpu")
        options = sanitizing(options, backend)
        brought = plugins(wanted=options.plugins)
        # A run under sanitizers says nothing of what the op computes; what a plug-in rests on is not watched.
        kept = options.evidence and not options.sanitize and not brought
        store = Store(options.evidence, named=True) if options.evidence and kept else None
        paths, root = registries(options.registry, brought)
        policy = load_all(paths, limits_by_check())
        payload = {
            "root": root,
            "registries": list(map(str, paths)),
            "modules": list(policy.modules),
            "backend": backend,
            "level": options.level,
            "coverage": options.coverage,
            "watch": store is not None,
            "sanitize": {"tools": list(options.sanitize), "seconds": options.timeout},
        }
        pool = Pool(
            entry="opcheck.worker:serve",
            preload=PRELOAD,
            require=("torch", "opcheck.worker"),
            environment=workers_environment(backend),
            size=options.workers or (1 if backend == "cuda" else os.cpu_count() or 1),
            timeout=options.timeout + (GRACE if options.sanitize else 0.0),
            payload=payload,
        )
        try:
            skip: list[str] = []
            registry = describe(pool, skip)
        except BaseException:
            pool.close()
            raise
        if brought:
            known = {**registry.environment, "plugins": ", ".join(map(str, brought))}
            registry = replace(registry, environment=known)
        return cls(options=options, policy=policy, backend=backend, pool=pool, registry=registry,
                   payload=payload, skip=skip, store=store, started=started)  # fmt: skip

    def close(self) -> None:
        """End the workers."""
        self.pool.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def problems(self) -> list[str]:
        """What is wrong with the registry as a whole, as sentences; any of it closes the gate."""
        places = {name: about["place"] for name, about in self.registry.ops.items()}
        return registry_problems(self.policy.ops, places, self.registry.failures.values(), self.policy.modules)

    @property
    def ops(self) -> tuple[str, ...]:
        """Names of the ops that can be audited and that the options select.

        Raises:
            UnknownOp: A name or glob matches nothing.
        """
        if self.options.cases:
            return self._select(tuple(Case.parse(text).op for text in self.options.cases))
        return self._select(self.options.ops)

    def _select(self, wanted: Sequence[str]) -> tuple[str, ...]:
        known = tuple(sorted(set(self.policy.ops) & set(self.registry.ops)))
        try:
            return select_ops(tuple(dict.fromkeys(wanted)), known)
        except UnknownOp as error:
            # A module that does not import takes its ops with it: that, not the name, is what to mend.
            raise UnknownOp("\n".join((str(error), *self.problems))) from None

    def plan(self, answered: Collection[str] = ()) -> dict[str, Plan]:
        """Return the plan of every selected op that is not answered for already."""
        if self.options.cases:
            return self._given_cases()
        wanted = matcher(self.options.keyword)
        ops = tuple(name for name in self.ops if name not in answered)
        self._learn([name for name in ops if self.registry.ops[name]["kernel"]])
        plans = {}
        for name in ops:
            if not self.registry.ops[name]["kernel"]:
                plans[name] = Plan(cases=(), not_covered=(f"{self.backend}: the op has no kernel for it",))
                continue
            plan = plan_cases(
                self.policy.ops[name],
                level=self.options.level,
                backend=self.backend,
                seed=self.options.seed,
                refused=self.registry.refused,
                facts=self.facts[name],
                budget=self.options.budget,
            )
            if why := self.unlearnt.get(name):
                missing = f"layouts and the use of outputs: what the op takes and gives could not be learnt: {why}"
                plan = replace(plan, not_covered=(*plan.not_covered, missing))
            kept = small(plan.cases) if self.options.sanitize else plan.cases
            chosen = tuple(item for item in kept if wanted(item.case.id) and self._judged(item))
            if chosen or not (self.options.keyword or self.options.checks):
                plans[name] = replace(plan, cases=chosen)
        return plans

    def _judged(self, item: Planned) -> bool:
        """Say whether a chosen check has something to say of a case."""
        if not self.options.checks:
            return True
        about = self.registry.ops[item.case.op]
        subject = Subject(
            contract=self.policy.ops[item.case.op],
            case=item.case,
            level=self.options.level,
            representative=item.representative,
            mutated=tuple(about["mutated"]),
            registered=about["registered"],
            sanitizers=tuple(Sanitize(tool=tool, seconds=self.options.timeout) for tool in self.options.sanitize),
        )
        checks = all_checks()
        return any(not inapplicable(checks[name], subject) for name in self.options.checks)

    def _learn(self, ops: Sequence[str]) -> None:
        unknown = [name for name in ops if name not in self.facts]
        if unknown:
            facts, problems = learn(self.pool, unknown, self.skip)
            self.facts |= facts
            self.unlearnt |= problems

    def _given_cases(self) -> dict[str, Plan]:
        plans: dict[str, Plan] = {}
        given = dict.fromkeys(Case.parse(text) for text in self.options.cases)
        self._select(tuple(case.op for case in given))
        for case in given:
            fit(
                case,
                self.policy.ops[case.op],
                backend=self.backend,
                arguments=self.registry.ops[case.op]["arguments"],
            )
            before = plans.get(case.op, Plan(cases=()))
            item = Planned(case=case, representative=True)
            plans[case.op] = replace(before, cases=(*before.cases, item))
        return plans

    def audit(self, progress: Progress, tell: Callable[[str], None] = lambda sentence: None) -> AuditReport:
        """Audit the selected ops; Ctrl-C ends it early and keeps what was finished.

        Args:
            tell: Told what becomes of evidence, as sentences for the user.
        """
        checks = self.options.checks or tuple(all_checks())
        recorder = self._recorder(checks, tell)
        answered = recorder.answered(self.ops) if recorder else {}
        plans = self.plan(answered)
        building = self._building(plans, checks)
        if set(checks) == {COMPILE}:
            plans = building
        built: dict[str, CaseReport] = {}
        done: dict[str, list[CaseReport]] = {name: [] for name in plans}
        albums = {name: Album([item.case.id for item in plan.cases]) for name, plan in plans.items()}
        today = datetime.date.today()
        used: dict[str, set[Waiver]] = {name: set() for name in plans}
        made = {name: answer.report for name, answer in answered.items()}
        total = sum(len(plan.cases) for plan in plans.values())
        progress.planned(total + sum(len(plan.cases) for plan in building.values()))
        complete = True
        covered = Covered(self.registry.kernels)
        heard = recorder.heard if recorder else _ignore
        try:
            for _, case in build_cases(
                building, backend=self.backend, workers=self.options.workers, skip=self.skip, payload=self.payload,
                heard=heard,
            ):  # fmt: skip
                built[case.id] = case
                progress.finished(case)
            here = tuple(name for name in checks if name != COMPILE)
            for op, case in run_cases(
                self.pool, plans, checks=here, skip=self.skip, timeout=self.options.timeout, covered=covered.add,
                heard=heard,
            ):  # fmt: skip
                case = apply_waivers(op, merged(case, built.get(case.id)), self.policy.waivers, today, used[op])
                done[op].append(albums[op].take(case))
                progress.finished(case)
                if recorder and len(done[op]) == len(plans[op].cases):
                    made[op] = self._report(op, plans[op], albums[op].back(done[op]))
                    reached = covered.of(op) if self.options.coverage else {}
                    recorder.finish(made[op], waivers=used[op], unlearnt=self.unlearnt.get(op, ""), reached=reached)
                if self.options.exitfirst and case.verdict not in self.policy.gate.accept:
                    break
        except KeyboardInterrupt:
            complete = False
        finally:
            progress.close()
        problems = self.problems
        covering = {waiver for waivers in used.values() for waiver in waivers}
        problems += waiver_problems(self.policy.waivers, today, covering, whole=self._whole and complete)
        made |= {
            name: self._report(name, plans[name], albums[name].back(done[name])) for name in plans if name not in made
        }
        reports = tuple(made[name] for name in ([op for op in self.ops if op in made] if answered else plans))
        kernels = covered.kernels(whole=self._every_op) if self.options.coverage else None
        if kernels is not None and complete and not self._narrowed:
            problems += shortfalls(kernels, self.policy, plans, whole=self._every_op)
        result = gate(reports, self.policy.gate, problems=problems, complete=complete)
        report = AuditReport(
            ops=reports,
            verdict=result.verdict,
            exit_status=int(result.exit_status),
            environment=self.registry.environment,
            policy_digest=digest_of_files(self.payload["registries"]),
            problems=result.problems,
            complete=complete and sum(map(len, done.values())) == total,
            level=self.options.level,
            kernels=kernels,
        )
        return following(report, registry=str(self.options.registry or ""), whole=self._whole)

    def _report(self, name: str, plan: Plan, cases: Sequence[CaseReport]) -> OpReport:
        return op_report(
            self.policy.ops[name], plan, cases, about=self.registry.ops[name],
            device=self.registry.environment["device"], whole=not self._narrowed,
        )  # fmt: skip

    def _recorder(self, checks: Sequence[str], tell: Callable[[str], None]) -> Recorder | None:
        if self.store is None:
            return None
        return Recorder(
            options=self.options, policy=self.policy, registry=self.registry, backend=self.backend, store=self.store,
            started=self.started, checks=tuple(checks), narrowed=self._narrowed, tell=tell,
        )  # fmt: skip

    def _building(self, plans: Mapping[str, Plan], checks: Sequence[str]) -> dict[str, Plan]:
        """Return of each plan the cases whose kernels are to be built.

        What is built does not depend on a case's values: a case that is run again is not built again unasked.
        """
        asked = COMPILE in (self.options.checks if self.options.cases else checks)
        return to_build(plans, self.policy, self.options.level) if asked else {}

    @property
    def _whole(self) -> bool:
        return not self._narrowed and self._every_op

    @property
    def _narrowed(self) -> bool:
        """Whether the options leave out cases or checks of the ops that they select."""
        options = self.options
        return bool(options.cases or options.keyword or options.checks or options.exitfirst)

    @property
    def _every_op(self) -> bool:
        return set(self.ops) == set(self.policy.ops)


def audit(options: Options | None = None, *, progress: Progress | None = None, **settings: Any) -> AuditReport:
    """Audit registered ops in worker processes and return the report.

    Args:
        options: What to audit; or give its fields as keywords: `opcheck.audit(ops=("ops::softmax",), level="quick")`.
        progress: Told of every finished case.
    """
    chosen = options or Options(**settings)
    with Session.open(chosen) as session:
        return session.audit(progress or Silent())


def _ignore(op: str, read: Sequence[str] | None) -> None: ...


def _refuse_unknown_checks(names: Sequence[str]) -> None:
    known = all_checks()
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise OpcheckError(f"--check: {name!r} is not a check; there are {', '.join(sorted(known))}{hint}")
