"""Every check proves itself: it holds on one of its controls, not on another, and gives each one's verdict."""

import dataclasses
import importlib
import pkgutil
import re

import pytest

import opcheck.checks
from opcheck.auditor import judge
from opcheck.checks import all_checks, limits_by_check
from opcheck.core.oracle import ORACLE
from opcheck.core.outcome import Crashed, Raised, Returned, TimedOut
from opcheck.core.policy import Override, Policy
from opcheck.core.verdict import Verdict, worst

CHECKS = all_checks()
CONTROLS = [(name, control) for name, check in CHECKS.items() for control in check.controls()]
GOOD = (Verdict.PASS, Verdict.PASS_WITH_LIMITATIONS)
each = pytest.mark.parametrize("name", CHECKS)
each_control = pytest.mark.parametrize(("name", "control"), CONTROLS, ids=lambda item: getattr(item, "name", item))


def findings(name, control):
    overrides = (Override(check=name, dtype="", values=control.limits),) if control.limits else ()
    return judge({name: CHECKS[name]}, control.subject, control.seen, Policy(defaults=overrides))


def test_every_module_with_a_check_is_found():
    modules = {info.name for info in pkgutil.iter_modules(opcheck.checks.__path__)}
    written = {name for name in modules if hasattr(importlib.import_module(f"opcheck.checks.{name}"), "check")}
    assert len(CHECKS) == len(written)
    assert {"structure", "numerics", "determinism", "library"} <= set(CHECKS)
    assert limits_by_check() == {name: check.limits for name, check in CHECKS.items()}


@each
def test_one_control_holds_and_one_does_not(name):
    controls = CHECKS[name].controls()
    assert {control.expect in GOOD for control in controls} == {True, False}
    if name != ORACLE:  # an oracle that is not fit to judge by is no fault of the target
        assert any(control.expect is Verdict.FAIL for control in controls), "a check that can never fail checks nothing"
    assert len({control.name for control in controls}) == len(controls)


@each_control
def test_a_control_gets_its_verdict(name, control):
    found = findings(name, control)
    assert found, "a check that says nothing proves nothing"
    assert worst(item.verdict for item in found) is control.expect
    assert CHECKS[name].applies(control.subject) == ""


@each_control
def test_a_finding_names_its_check_and_a_law_and_tells_what_was_measured(name, control):
    for item in findings(name, control):
        assert item.check == name
        assert item.tensor
        assert item.law.endswith(".")
        assert item.detail
        assert all(isinstance(number, float) for number in item.numbers.values())


@each_control
def test_judging_twice_gives_the_same(name, control):
    assert findings(name, control) == findings(name, control)


@each_control
def test_a_control_holds_an_outcome_for_what_it_answers(name, control):
    assert control.seen
    assert all(isinstance(outcome, Returned | Raised | Crashed | TimedOut) for outcome in control.seen.values())


@each
def test_a_check_says_nothing_of_what_it_has_not_seen(name):
    check, control = CHECKS[name], CHECKS[name].controls()[0]
    assert judge({name: check}, control.subject, {}, Policy()) == ()
    assert check.plan(control.subject, {}, lambda dtype: check.limits()), "and asks for what it needs"


@each
def test_a_law_is_one_sentence_in_the_indicative(name):
    law = CHECKS[name].law
    assert re.fullmatch(r"[A-Z][^.!?]*(?:\.\w[^.!?]*)*\.", law), law
    assert not re.search(r"\b(should|must|shall|ought)\b", law)


@each
def test_what_a_check_requires_is_known_and_comes_before_it(name):
    order = list(CHECKS)
    assert all(order.index(other) < order.index(name) for other in CHECKS[name].requires)


@each
def test_limits_are_frozen_documented_and_have_defaults(name):
    limits = CHECKS[name].limits
    assert limits.__dataclass_params__.frozen
    assert limits() == limits()
    assert limits.__doc__
    for item in dataclasses.fields(limits):
        assert re.fullmatch(r"[A-Z].*\.", item.metadata["doc"]), item.name
        assert item.metadata["loose"] in ("higher", "lower", "neither")
        assert item.default is not dataclasses.MISSING


@each
def test_a_check_has_a_name_for_toml_and_a_docstring(name):
    assert re.fullmatch(r"[a-z][a-z_]*", name)
    assert type(CHECKS[name]).__doc__
    assert importlib.import_module(type(CHECKS[name]).__module__).__doc__
