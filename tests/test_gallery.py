"""Each broken kernel of the gallery is caught by the right check, at the right place; its right twin passes."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from opcheck.checks import all_checks
from opcheck.core.cases import Plan
from opcheck.core.sanitizer import SANITIZE
from opcheck.core.verdict import Verdict
from opcheck.session import Options, Session, Silent

from .broken.expected import EXPECTED
from .broken.judge import complaints, missed

REGISTRY = Path(__file__).parent / "broken" / "registry.toml"
OPS = tuple(f"{twin}::{name}" for name in EXPECTED for twin in ("broken", "right"))


class Triggers(Session):
    """A session that runs of each op the cases in which the mechanism shows; `make gallery` runs all of them."""

    def plan(self) -> dict[str, Plan]:
        return {name: _triggering(name, plan) for name, plan in super().plan().items()}

    @property
    def _whole(self) -> bool:
        return False


def _triggering(name: str, plan: Plan) -> Plan:
    found = [next((item for item in plan.cases if part in item.case.id), None)
             for part in EXPECTED[name.partition("::")[2]].wanted]  # fmt: skip
    return replace(plan, cases=tuple(dict.fromkeys(item for item in found if item is not None)))


@pytest.fixture(scope="module")
def report():
    """An audit of the whole gallery, each mechanism on the cases that trigger it."""
    options = Options(registry=REGISTRY, backend="cpu", level="standard", budget=0.0, ops=OPS)
    with Triggers.open(options) as session:
        return session.audit(Silent())


@pytest.fixture(scope="module")
def ops(report):
    return {op.op: op for op in report.ops}


def test_the_gallery_itself_is_in_order(report, ops):
    assert report.problems == ()
    assert report.complete
    assert report.exit_status == 1
    assert set(ops) == set(OPS)


def test_twins_promise_the_same():
    tables = tomllib.loads(REGISTRY.read_text())["op"]
    assert set(tables) == set(OPS)
    for name in EXPECTED:
        assert tables[f"broken::{name}"] == tables[f"right::{name}"]


def test_every_check_has_a_broken_kernel_that_nothing_else_catches():
    alone = {check for want in EXPECTED.values() if len(checks := {check for check, _ in want.fails}) == 1
             for check in checks}  # fmt: skip
    assert alone == set(all_checks()) - {SANITIZE}  # which watches compiled kernels only: benchmarks/cuda_broken


@pytest.mark.parametrize("name", EXPECTED)
def test_broken(name, ops):
    op = ops[f"broken::{name}"]
    assert missed(EXPECTED[name], op) == "", "\n".join(complaints(op))


@pytest.mark.parametrize("name", EXPECTED)
def test_right(name, ops):
    op = ops[f"right::{name}"]
    assert op.cases
    assert complaints(op) == []
    assert op.verdict is Verdict.PASS
