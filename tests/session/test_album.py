"""Of each kind of failure one case has the pictures: the one on which it is told."""

from dataclasses import replace

from opcheck.core.pictures import Histogram
from opcheck.core.told import told
from opcheck.session.album import MOST_KINDS, Album
from tests.core.reports import FAIL, PASS, case, finding


def picture(number):
    return (Histogram(unit="one", edges=(0.0, 1.0), target=(number,), reference=(0,)),)


def failing(size, number, *, tensor="out", check="numerics", **changes):
    item = finding(tensor, FAIL, check=check, pictures=picture(number), **changes)
    return case("ops::x", FAIL, size=f"n={size}", findings=(item, finding("other", PASS)))


def kept(*cases, order=None):
    album = Album(order or [item.id for item in cases])
    stripped = [album.take(item) for item in cases]
    assert not any(item.pictures for each in stripped for item in each.findings)
    return album.back(stripped)


def numbers(cases):
    return [[item.pictures[0].target[0] for item in each.findings if item.pictures] for each in cases]


def test_the_case_that_is_told_has_them_in_whatever_order_cases_arrive():
    cases = [failing(128, 1), failing(64, 2), failing(4, 3), failing(256, 4, looks_like="a pattern")]
    assert numbers(kept(*cases)) == [[], [], [], [4]]
    assert numbers(kept(*cases[::-1], order=[item.id for item in cases])) == [[4], [], [], []]
    assert told(kept(*cases))[0].finding.pictures == picture(4)


def test_of_two_that_say_as_much_the_one_planned_first_is_told():
    first, second = failing(64, 1), replace(failing(64, 2), id="ops::x[float16;n=64;zeros;;;;0]@cpu")
    assert numbers(kept(second, first, order=[first.id, second.id])) == [[], [1]]
    assert told((first, second))[0].case is first


def test_each_kind_keeps_its_own_and_an_op_keeps_a_few():
    cases = [failing(64 + at, at, tensor=f"out {at}") for at in range(MOST_KINDS + 3)]
    assert numbers(kept(*cases)) == [[at] if at < MOST_KINDS else [] for at in range(MOST_KINDS + 3)]


def test_a_waived_failure_is_not_depicted():
    assert numbers(kept(failing(64, 1, waived="known"))) == [[]]


def test_a_case_without_pictures_is_left_as_it_is():
    right = case("ops::x", PASS, findings=(finding(),))
    assert Album([right.id]).take(right) is right
