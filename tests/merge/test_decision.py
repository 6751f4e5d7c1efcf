"""Ages as people write them, and the exit status of points."""

from __future__ import annotations

import datetime

import pytest

from opcheck.core.age import age_of, told
from opcheck.core.decision import Point, status_of
from opcheck.core.gate import ExitStatus


@pytest.mark.parametrize(("text", "hours"), [("1h", 1), ("36h", 36), ("14d", 336), ("2w", 336)])
def test_ages(text, hours):
    assert age_of(text) == datetime.timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "14", "d", "0d", "-1d", "1.5d", "14 d", "14d ", "14m", "999999d", "١d"])
def test_what_is_no_age(text):
    assert age_of(text) is None


@pytest.mark.parametrize(("hours", "words"), [(0.5, "0 hours"), (1.9, "1 hour"), (47, "47 hours"), (48, "2 days")])
def test_ages_in_words(hours, words):
    assert told(datetime.timedelta(hours=hours)) == words


def point(rule):
    return Point(rule=rule, sentence="It is so.", opens="mend it")


@pytest.mark.parametrize(("rules", "cases", "status"), [
    ((), 3, ExitStatus.OK),
    (("verdict",), 3, ExitStatus.CLOSED),
    (("evidence-missing",), 3, ExitStatus.CLOSED),
    ((), 0, ExitStatus.NOTHING),
    (("evidence-missing", "no-cases"), 0, ExitStatus.NOTHING),
    (("evidence-missing", "op-removed"), 0, ExitStatus.CLOSED),
])  # fmt: skip
def test_status(rules, cases, status):
    assert status_of(tuple(map(point, rules)), cases=cases) == status
