"""An audit from start to end: read the policy, describe the registry, hand the cases to workers, gate the result."""

from __future__ import annotations

import datetime
import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opcheck.checks import all_checks, limits_by_check
from opcheck.core.behaviour import REFUSAL
from opcheck.core.building import COMPILE
from opcheck.core.case import Case
from opcheck.core.cases import Plan, Planned, plan_cases
from opcheck.core.facts import Facts
from opcheck.core.following import following
from opcheck.core.gate import apply_waivers, gate, waiver_problems
from opcheck.core.outside import outside
from opcheck.core.policy import Policy, Waiver
from opcheck.core.reached import shortfalls
from opcheck.core.report import AuditReport, CaseReport
from opcheck.core.select import matcher, select_ops
from opcheck.declared import load_all
from opcheck.errors import OpcheckError, UnknownOp
from opcheck.run.isolate import Pool
from opcheck.session.building import build_cases, merged, to_build
from opcheck.session.covered import Covered
from opcheck.session.described import Registry, backend_of, describe, workers_environment
from opcheck.session.fitting import fit
from opcheck.session.handout import run_cases
from opcheck.session.learning import learn
from opcheck.session.options import Options, Progress, Silent
from opcheck.session.plugins import digest_of_files, plugins, registries
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

    @classmethod
    def open(cls, options: Options) -> Session:
        """Read the policy, start the workers and have one of them describe the registry."""
        _refuse_unknown_checks(options.checks)
        backend = backend_of(options.backend)
        if options.coverage and backend != "cpu":
            raise OpcheckError(f"--coverage records interpreted kernels, and on {backend} none is; give --backend cpu")
        options = sanitizing(options, backend)
        brought = plugins(wanted=options.plugins)
        paths, root = registries(options.registry, brought)
        policy = load_all(paths, limits_by_check())
        payload = {
            "root": root,
            "registries": list(map(str, paths)),
            "modules": list(policy.modules),
            "backend": backend,
            "level": options.level,
            "coverage": options.coverage,
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
                   payload=payload, skip=skip)  # fmt: skip

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
        found = list(self.registry.failures.values())
        declared, present = set(self.policy.ops), set(self.registry.ops)
        for name in sorted(present - declared):
            place = self.registry.ops[name]["place"]
            found.append(
                f"{name} is registered at {place} and not declared in registry.toml; `opcheck lint` prints its table"
            )
        for name in sorted(declared - present):
            found.append(
                f"{name} is declared in registry.toml and not registered by {', '.join(self.policy.modules)}: "
                f"register it or delete its table"
            )
        return found

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

    def plan(self) -> dict[str, Plan]:
        """Return the plan of every selected op."""
        if self.options.cases:
            return self._given_cases()
        wanted = matcher(self.options.keyword)
        self._learn([name for name in self.ops if self.registry.ops[name]["kernel"]])
        plans = {}
        for name in self.ops:
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
            chosen = tuple(item for item in kept if wanted(item.case.id) and self._judged(item.case))
            if chosen or not self.options.keyword:
                plans[name] = replace(plan, cases=chosen)
        return plans

    def _judged(self, case: Case) -> bool:
        """Say whether a chosen check has something to say of a case: outside of the contract only `refusal` has."""
        chosen = self.options.checks
        if not chosen:
            return True
        if outside(self.policy.ops[case.op], case):
            return REFUSAL in chosen
        return any(name != REFUSAL for name in chosen)

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

    def audit(self, progress: Progress) -> AuditReport:
        """Audit the selected ops; Ctrl-C ends it early and keeps what was finished."""
        plans = self.plan()
        checks = self.options.checks or tuple(all_checks())
        building = self._building(plans, checks)
        if set(checks) == {COMPILE}:
            plans = building
        built: dict[str, CaseReport] = {}
        done: dict[str, list[CaseReport]] = {name: [] for name in plans}
        today = datetime.date.today()
        used: set[Waiver] = set()
        total = sum(len(plan.cases) for plan in plans.values())
        progress.planned(total + sum(len(plan.cases) for plan in building.values()))
        complete = True
        covered = Covered(self.registry.kernels)
        try:
            for _, case in build_cases(
                building, backend=self.backend, workers=self.options.workers, skip=self.skip, payload=self.payload
            ):
                built[case.id] = case
                progress.finished(case)
            here = tuple(name for name in checks if name != COMPILE)
            for op, case in run_cases(
                self.pool, plans, checks=here, skip=self.skip, timeout=self.options.timeout, covered=covered.add
            ):
                case = apply_waivers(op, merged(case, built.get(case.id)), self.policy.waivers, today, used)
                done[op].append(case)
                progress.finished(case)
                if self.options.exitfirst and case.verdict not in self.policy.gate.accept:
                    break
        except KeyboardInterrupt:
            complete = False
        finally:
            progress.close()
        problems = self.problems
        problems += waiver_problems(self.policy.waivers, today, used, whole=self._whole and complete)
        reports = tuple(
            op_report(
                self.policy.ops[name], plans[name], done[name], about=self.registry.ops[name],
                device=self.registry.environment["device"], whole=self._whole,
            )
            for name in plans
        )  # fmt: skip
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


def _refuse_unknown_checks(names: Sequence[str]) -> None:
    known = all_checks()
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise OpcheckError(f"--check: {name!r} is not a check; there are {', '.join(sorted(known))}{hint}")
