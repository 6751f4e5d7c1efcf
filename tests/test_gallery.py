"""Each broken kernel of the gallery is caught by the right check, at the right place; its right twin passes."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from opcheck.checks import all_checks
from opcheck.core.cases import Plan
from opcheck.core.oracle import ORACLE
from opcheck.core.sanitizer import SANITIZE
from opcheck.core.verdict import Verdict
from opcheck.session import Options, Session, Silent

from .broken.expected import EXPECTED
from .broken.judge import complaints, missed

REGISTRY = Path(__file__).parent / "broken" / "registry.toml"
ORDINARY = tuple(name for name, want in EXPECTED.items() if want.level == "standard")
FULL = tuple(name for name, want in EXPECTED.items() if want.level == "full")


class Triggers(Session):
    """A session that runs of each op the cases in which the mechanism shows; `make gallery` runs all of them."""

    def plan(self, answered: Collection[str] = ()) -> dict[str, Plan]:
        return {name: _triggering(name, plan) for name, plan in super().plan(answered).items()}

    @property
    def _narrowed(self) -> bool:
        return True  # what is left out is left out on purpose


def _triggering(name: str, plan: Plan) -> Plan:
    found = [next((item for item in plan.cases if part in item.case.id), None)
             for part in EXPECTED[name.partition("::")[2]].wanted]  # fmt: skip
    return replace(plan, cases=tuple(dict.fromkeys(item for item in found if item is not None)))


def audited(names, **options):
    """An audit of mechanisms, each on the cases that trigger it."""
    with Triggers.open(Options(registry=REGISTRY, backend="cpu", budget=0.0, ops=twins(names), **options)) as session:
        return session.audit(Silent())


def twins(names):
    return tuple(f"{twin}::{name}" for name in names for twin in ("broken", "right"))


@pytest.fixture(scope="module")
def report():
    return audited(ORDINARY, level="standard")


@pytest.fixture(scope="module")
def ops(report):
    return {op.op: op for op in report.ops}


@pytest.fixture(scope="module")
def stressed():
    # The first build of inductor on a machine is silent for minutes.
    return {op.op: op for op in audited(FULL, level="full", timeout=300.0).ops}


def test_the_gallery_itself_is_in_order(report, ops):
    assert report.problems == ()
    assert report.complete
    assert report.exit_status == 1
    assert set(ops) == set(twins(ORDINARY))


def test_twins_promise_the_same():
    tables = tomllib.loads(REGISTRY.read_text())["op"]
    assert set(tables) == set(twins(EXPECTED))
    for name in EXPECTED:
        assert tables[f"broken::{name}"] == tables[f"right::{name}"]


def test_every_check_has_a_broken_kernel_that_nothing_else_catches():
    alone = {check for want in EXPECTED.values() if len(checks := {check for check, _ in want.fails}) == 1
             for check in checks}  # fmt: skip
    # Sanitizers watch compiled kernels only (benchmarks/cuda_broken); `oracle` is about golden and reference, and
    # tests/run/test_examine.py has wrong ones of both.
    assert alone == set(all_checks()) - {SANITIZE, ORACLE}


def is_caught(name, op):
    assert missed(EXPECTED[name], op) == "", "\n".join(complaints(op))


def passes(op):
    assert op.cases
    assert complaints(op) == []
    assert op.verdict is Verdict.PASS


@pytest.mark.parametrize("name", ORDINARY)
def test_broken(name, ops):
    is_caught(name, ops[f"broken::{name}"])


@pytest.mark.parametrize("name", ORDINARY)
def test_right(name, ops):
    passes(ops[f"right::{name}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_broken_at_the_level_full(name, stressed):
    is_caught(name, stressed[f"broken::{name}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_right_at_the_level_full(name, stressed):
    passes(stressed[f"right::{name}"])
