"""An audit from start to end: read the policy, describe the registry, hand the cases to workers, gate the result."""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from opcheck.checks import all_checks, limits_by_check
from opcheck.checks.protocol import Subject
from opcheck.core.case import Case
from opcheck.core.cases import Plan, Planned, plan_cases
from opcheck.core.gate import ExitStatus, apply_waivers, gate, waiver_problems
from opcheck.core.outcome import Compare, Crashed, Outcome, TimedOut
from opcheck.core.policy import DTYPES, Contract, Level, Policy, Waiver
from opcheck.core.report import AuditReport, CaseReport, OpReport, case_from, verdict_of
from opcheck.core.select import matcher, select_ops
from opcheck.core.stages import stages
from opcheck.core.verdict import Verdict, worst
from opcheck.declared import find, load
from opcheck.errors import BadCase, OpcheckError, WorkerError
from opcheck.run.isolate import Death, Died, Done, Message, Pool
from opcheck.worker import PRELOAD

SLICE = 6  # cases of a work item: small enough to spread one op over all cores


class Progress(Protocol):
    """What a session tells while it runs."""

    def planned(self, total: int) -> None: ...
    def finished(self, case: CaseReport) -> None: ...
    def close(self) -> None: ...


class Silent:
    """Tell nothing."""

    def planned(self, total: int) -> None: ...
    def finished(self, case: CaseReport) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to audit, and how; the fields are the command line's flags."""

    ops: tuple[str, ...] = ()
    registry: Path | None = None
    level: Level = "standard"
    backend: str = "auto"
    seed: int = 0
    checks: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    keyword: str = ""
    workers: int = 0
    timeout: float = 60.0
    exitfirst: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """What a worker found in the registry's modules."""

    ops: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, str]
    refused: Mapping[str, str]
    environment: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Session:
    """One open session: the policy, the worker pool, and what the registry holds.

    Raises:
        PolicyError, UnknownOp, BadCase: The configuration or the command line is wrong.
        WorkerError: The workers do not start.
    """

    options: Options
    policy: Policy
    backend: str
    pool: Pool
    registry: Registry
    skip: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, options: Options) -> Session:
        """Read the policy, start the workers and have one of them describe the registry."""
        path = (options.registry or find()).resolve()
        policy = load(path, limits_by_check())
        _refuse_unknown_checks(options.checks)
        backend = _backend(options.backend)
        payload = {
            "root": str(path.parent),
            "registry": str(path),
            "modules": list(policy.modules),
            "backend": backend,
            "level": options.level,
        }
        pool = Pool(
            entry="opcheck.worker:serve",
            preload=PRELOAD,
            require=("torch", "opcheck.worker"),
            environment=workers_environment(backend),
            size=options.workers or (1 if backend == "cuda" else os.cpu_count() or 1),
            timeout=options.timeout,
            payload=payload,
        )
        try:
            skip: list[str] = []
            registry = _describe(pool, skip)
        except BaseException:
            pool.close()
            raise
        return cls(options=options, policy=policy, backend=backend, pool=pool, registry=registry, skip=skip)

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
                f'{name} is declared in registry.toml and not registered by {", ".join(self.policy.modules)}: '
                f"register it or delete its table"
            )
        return found

    @property
    def ops(self) -> tuple[str, ...]:
        """Names of the ops that can be audited and that the options select.

        Raises:
            UnknownOp: A name or glob matches nothing.
        """
        known = tuple(sorted(set(self.policy.ops) & set(self.registry.ops)))
        if self.options.cases:
            return select_ops(tuple(dict.fromkeys(Case.parse(text).op for text in self.options.cases)), known)
        return select_ops(self.options.ops, known)

    def plan(self) -> dict[str, Plan]:
        """Return the plan of every selected op."""
        if self.options.cases:
            return self._given_cases()
        wanted = matcher(self.options.keyword)
        plans = {}
        for name in self.ops:
            plan = plan_cases(
                self.policy.ops[name],
                level=self.options.level,
                backend=self.backend,
                seed=self.options.seed,
                refused=self.registry.refused,
            )
            plans[name] = replace(plan, cases=tuple(item for item in plan.cases if wanted(item.case.id)))
        return plans

    def _given_cases(self) -> dict[str, Plan]:
        plans: dict[str, Plan] = {}
        for text in self.options.cases:
            case = self._fitting(Case.parse(text))
            before = plans.get(case.op, Plan(cases=()))
            item = Planned(case=case, representative=True)
            plans[case.op] = replace(before, cases=(*before.cases, item))
        select_ops(tuple(plans), tuple(sorted(set(self.policy.ops) & set(self.registry.ops))))
        return plans

    def _fitting(self, case: Case) -> Case:
        """Return the case if the op's contract allows it; the backend is this session's."""
        contract = self.policy.ops.get(case.op)
        if case.backend != self.backend:
            raise BadCase(f"{case.id}: this audit runs on {self.backend}; call it with --backend {case.backend}")
        if contract is None:
            return case
        named = {name for name in case.dims if not name.startswith("...")}
        expected = {name for name in contract.dims if name != "..."}
        if named != expected:
            raise BadCase(f"{case.id}: its dims are {', '.join(sorted(named)) or 'none'}; the contract's are "
                          f"{', '.join(sorted(expected))}")  # fmt: skip
        for dtype in case.dtypes:
            if dtype not in DTYPES:
                raise BadCase(f"{case.id}: {dtype!r} is not an element type; it should be one of {', '.join(DTYPES)}")
        return case

    def audit(self, progress: Progress) -> AuditReport:
        """Audit the selected ops; Ctrl-C ends it early and keeps what was finished."""
        plans = self.plan()
        done: dict[str, list[CaseReport]] = {name: [] for name in plans}
        today = datetime.date.today()
        used: set[Waiver] = set()
        total = sum(len(plan.cases) for plan in plans.values())
        progress.planned(total)
        complete = True
        try:
            for op, case in self._run(plans):
                case = apply_waivers(op, case, self.policy.waivers, today, used)
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
        reports = tuple(self._op_report(name, plans[name], done[name]) for name in plans)
        result = gate(reports, self.policy.gate, problems=problems, complete=complete)
        return AuditReport(
            ops=reports,
            verdict=result.verdict,
            exit_status=int(result.exit_status),
            environment=self.registry.environment,
            policy_digest=hashlib.blake2b(Path(self.policy.path).read_bytes(), digest_size=16).hexdigest(),
            problems=result.problems,
            complete=complete and sum(map(len, done.values())) == total,
            level=self.options.level,
        )

    @property
    def _whole(self) -> bool:
        options = self.options
        return not (options.cases or options.keyword or options.checks or options.exitfirst) and set(self.ops) == set(
            self.policy.ops
        )

    def _run(self, plans: Mapping[str, Plan]) -> Iterator[tuple[str, CaseReport]]:
        """Yield each case's report as it is finished; a worker's death is its case's finding."""
        checks = list(self.options.checks or all_checks())
        items = [item for name, plan in plans.items() for item in _items(name, plan, checks, self.skip)]
        state = {index: _Slice(item=item) for index, item in enumerate(items)}
        for event in self.pool.run(items):
            part = state[event.item_index]
            op = part.item["op"]
            match event:
                case Message(body={"case": data}):
                    part.left.pop(0)
                    yield op, case_from(data)
                case Message(body=body):
                    part.last = body
                case Died(death=death):
                    if not part.left:
                        continue
                    entry = part.left.pop(0)
                    yield op, _lost(entry["id"], part.last, death, self.options.timeout)
                    if part.left:
                        rest = {**part.item, "cases": part.left}
                        state[self.pool.resubmit(rest)] = _Slice(item=rest)
                case Done():
                    pass

    def _op_report(self, name: str, plan: Plan, cases: Sequence[CaseReport]) -> OpReport:
        order = {item.case.id: at for at, item in enumerate(plan.cases)}
        ordered = tuple(sorted(cases, key=lambda case: order.get(case.id, len(order))))
        contract, facts = self.policy.ops[name], self.registry.ops[name]
        limitations = list(dict.fromkeys(_limitations(ordered)))
        if facts["promoted"]:
            limitations.append("golden is the reference promoted to float64: a mistake in the formula itself is not seen")
        missing = list(plan.not_covered)
        unfinished = len(plan.cases) - len(ordered)
        if unfinished:
            missing.append(f"{unfinished} planned cases did not run")
        return OpReport(
            op=name,
            verdict=worst(case.verdict for case in ordered),
            backend="Triton interpreted" if self.backend == "cpu" else self.registry.environment["device"],
            cases=ordered,
            limitations=tuple(limitations),
            not_covered=tuple(missing),
            stages=stages(contract, ordered),
            formula=contract.formula,
            kind=contract.kind,
            place=facts["place"],
        )


@dataclass(slots=True)
class _Slice:
    """A work item in flight: its cases that are still to come, and what its worker last announced."""

    item: Mapping[str, Any]
    left: list[Mapping[str, Any]] = field(init=False)
    last: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = list(self.item["cases"])


def audit(options: Options | None = None, *, progress: Progress | None = None, **settings: Any) -> AuditReport:
    """Audit registered ops in worker processes and return the report.

    Args:
        options: What to audit; or give its fields as keywords: `opcheck.audit(ops=("ops::softmax",), level="quick")`.
        progress: Told of every finished case.
    """
    chosen = options or Options(**settings)
    with Session.open(chosen) as session:
        return session.audit(progress or Silent())


def _describe(pool: Pool, skip: list[str]) -> Registry:
    """Have a worker import the registry; a module that kills it is skipped and named."""
    killed: dict[str, str] = {}
    while True:
        importing = ""
        answer: Mapping[str, Any] | None = None
        death: Death | None = None
        for event in pool.run([{"describe": True, "skip": skip}]):
            match event:
                case Message(body={"importing": name}):
                    importing = name
                case Message(body={"no_device": sentence}):
                    raise OpcheckError(sentence)
                case Message(body={"registry": found}):
                    answer = found
                case Died():
                    death = event.death
        if answer is not None:
            return Registry(
                ops={item["name"]: item for item in answer["ops"]},
                failures={**killed, **answer["failures"]},
                refused=answer["refused"],
                environment=answer["environment"],
            )
        if not importing or importing in skip or death is None:
            raise WorkerError(f"the worker that describes the registry ended: {death.reason if death else 'no answer'}")
        skip.append(importing)
        killed[importing] = f"importing {importing}: the process {death.reason}"


def _lost(case_id: str, last: Mapping[str, Any], death: Death, timeout: float) -> CaseReport:
    """Report the case whose worker died: whose death it was, the worker's last announcement tells."""
    announced = last if last.get("start") == case_id or last.get("label") == "siblings" else {}
    role, label = announced.get("role", "target"), announced.get("label", "start")
    during = "" if label == "compare" else f" (during {label})"
    outcome: Outcome = TimedOut(role=role, seconds=timeout)
    if not death.timed_out:
        outcome = Crashed(role=role, reason=f"{death.reason}{during}", log=death.log)
    case = Case.parse(case_id)
    subject = Subject(contract=Contract(name=case.op, kind="elementwise", dtypes=case.dtypes, dims=()), case=case)
    findings = all_checks()["structure"].judge(subject, {Compare(): outcome}, lambda dtype: None)
    return CaseReport(id=case_id, verdict=verdict_of(findings), findings=findings)


def _items(op: str, plan: Plan, checks: Collection[str], skip: Sequence[str]) -> Iterator[dict[str, Any]]:
    entries = [{"id": item.case.id, "representative": item.representative} for item in plan.cases]
    for start in range(0, len(entries), SLICE):
        yield {"op": op, "cases": entries[start : start + SLICE], "checks": list(checks), "skip": list(skip)}


def _limitations(cases: Sequence[CaseReport]) -> Iterator[str]:
    for case in cases:
        for item in case.findings:
            if item.waived:
                yield f"{item.check} of {item.tensor} is waived: {item.waived}"
            elif item.verdict is Verdict.PASS_WITH_LIMITATIONS:
                parsed = Case.parse(case.id)
                yield f"{item.tensor} ({parsed.dtype}, {parsed.values}): {item.detail}"


def _refuse_unknown_checks(names: Sequence[str]) -> None:
    import difflib

    known = all_checks()
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise OpcheckError(f"--check: {name!r} is not a check; there are {', '.join(sorted(known))}{hint}")


def _backend(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    return "cuda" if any(Path("/dev").glob("nvidia[0-9]*")) else "cpu"


def workers_environment(backend: str) -> dict[str, str]:
    """Return the variables under which the workers of a backend run; Triton reads its own when it is imported."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if backend == "cpu":
        return {**threads, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    return {**threads, "TRITON_INTERPRET": "0"}
