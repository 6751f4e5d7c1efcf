"""Each broken kernel of the gallery is caught by the right check, at the right place; its right twin passes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from opcheck.checks import all_checks
from opcheck.core.verdict import Verdict
from opcheck.session import Options, audit

from .broken.expected import EXPECTED

REGISTRY = Path(__file__).parent / "broken" / "registry.toml"


@pytest.fixture(scope="module")
def report():
    """One audit of the whole gallery."""
    return audit(Options(registry=REGISTRY, backend="cpu", level="standard"))


@pytest.fixture(scope="module")
def ops(report):
    return {op.op: op for op in report.ops}


def test_the_gallery_itself_is_in_order(report, ops):
    assert report.problems == ()
    assert report.complete
    assert report.exit_status == 1
    assert set(ops) == {f"{twin}::{name}" for name in EXPECTED for twin in ("broken", "right")}


def test_twins_promise_the_same():
    tables = tomllib.loads(REGISTRY.read_text())["op"]
    for name in EXPECTED:
        assert tables[f"broken::{name}"] == tables[f"right::{name}"]


def test_every_check_has_a_broken_kernel_that_nothing_else_catches():
    alone = {check for want in EXPECTED.values() if len(checks := {check for check, _ in want.fails}) == 1
             for check in checks}  # fmt: skip
    assert alone == set(all_checks())


@pytest.mark.parametrize("name", EXPECTED)
def test_broken(name, ops):
    want, op = EXPECTED[name], ops[f"broken::{name}"]
    found = [(case, item) for case in op.cases for item in case.findings if item.verdict is not Verdict.PASS]
    told = "\n".join(f"{case.id} {item.verdict} {item.check} {item.tensor}: {item.detail}" for case, item in found)
    assert op.verdict is Verdict.FAIL, told
    assert {item.verdict for _, item in found} == {Verdict.FAIL}, told
    assert {(item.check, item.tensor) for _, item in found} - want.perhaps == want.fails, told
    assert all(want.only in case.id for case, _ in found), told
    words = [f"{item.detail} {item.looks_like}" for case, item in found if want.among in case.id]
    assert any(want.says in text for text in words), told


@pytest.mark.parametrize("name", EXPECTED)
def test_right(name, ops):
    op = ops[f"right::{name}"]
    found = [(case.id, item) for case in op.cases for item in case.findings if item.verdict is not Verdict.PASS]
    assert op.cases
    assert found == []
    assert op.verdict is Verdict.PASS
