"""Have the check `compile` look at an op's representative cases, in workers of its own.

A process that imports Triton to interpret kernels cannot compile them, so these workers import it to compile; they need
no GPU. They start only where there is something to build.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opcheck.checks import all_checks
from opcheck.checks.protocol import Subject
from opcheck.core.building import COMPILE
from opcheck.core.cases import Plan
from opcheck.core.outside import outside
from opcheck.core.policy import Level, Policy, limits_for
from opcheck.core.report import CaseReport, verdict_of
from opcheck.run.isolate import Pool
from opcheck.session.described import workers_environment
from opcheck.session.handout import run_cases
from opcheck.worker import PRELOAD

TIMEOUT = 300.0  # seconds for one kernel and target; the longest seen took 8
ON_ONE_GPU = 4  # workers that share a device for drawing the inputs


def to_build(plans: Mapping[str, Plan], policy: Policy, level: Level) -> dict[str, Plan]:
    """Return of each plan the cases for which the check `compile` has something to build."""
    check = all_checks()[COMPILE]

    def wanted(op: str, item: Any) -> bool:
        contract = policy.ops[op]
        subject = Subject(contract=contract, case=item.case, level=level, representative=item.representative)
        if check.applies(subject) or outside(contract, item.case):
            return False
        return bool(check.plan(subject, {}, lambda dtype: limits_for(check.limits, COMPILE, policy, op, dtype)))

    found = {
        op: replace(plan, cases=tuple(item for item in plan.cases if wanted(op, item))) for op, plan in plans.items()
    }
    return {op: plan for op, plan in found.items() if plan.cases}


def build_cases(
    plans: Mapping[str, Plan],
    *,
    backend: str,
    workers: int,
    skip: Sequence[str],
    payload: Mapping[str, Any],
    heard: Callable[[str, Sequence[str] | None], None] = lambda op, read: None,
) -> Iterator[tuple[str, CaseReport]]:
    """Yield each case's report of the check `compile`, with its op; `heard` is as `run_cases` has it."""
    if not plans:
        return
    cores = os.cpu_count() or 1
    with Pool(
        entry="opcheck.worker:serve",
        preload=PRELOAD,
        require=("torch", "opcheck.worker"),
        environment={**workers_environment(backend), "TRITON_INTERPRET": "0"},
        size=workers or (min(cores, ON_ONE_GPU) if backend == "cuda" else cores),
        timeout=TIMEOUT,
        payload=payload,
    ) as pool:
        yield from run_cases(pool, plans, checks=(COMPILE,), skip=skip, timeout=TIMEOUT, heard=heard, size=1)


def merged(case: CaseReport, built: CaseReport | None) -> CaseReport:
    """Return a case's report with what was found when its kernels were built."""
    if built is None:
        return case
    findings = (*case.findings, *built.findings)
    return replace(
        case, findings=findings, verdict=verdict_of(findings), seconds=round(case.seconds + built.seconds, 4)
    )
