"""docs/gallery.md has a line for each mechanism, docs/limits.md each public report that no mechanism stands for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.broken.expected import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "tests" / "broken" / "gallery"
FIRST_LINE = re.compile(r'"""(`broken::(?P<name>\w+)`|(?P<reports>K\d{3}(, K\d{3})*)): .*\.("""|)')


def reports(name: str) -> set[str]:
    return set(re.findall(r"K\d{3}", (GALLERY / f"{name}.py").read_text().partition("\n")[0]))


def column(page: str, at: int) -> list[str]:
    lines = (ROOT / "docs" / page).read_text().splitlines()
    return [line.split(" | ")[at].strip("| `") for line in lines if re.match(r"\| (`\w+`|K\d{3}) \|", line)]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_module_begins_with_its_mechanism(name):
    match = FIRST_LINE.fullmatch((GALLERY / f"{name}.py").read_text().partition("\n")[0])
    assert match is not None
    assert match["name"] in (None, name)


def test_the_page_has_every_mechanism():
    assert column("gallery.md", 0) == sorted(EXPECTED)


def test_every_mechanism_is_caught_and_its_twin_passes():
    assert not [text for text in column("gallery.md", 3) if text == "nothing"]
    assert {text.partition(",")[0] for text in column("gallery.md", 6)} == {"PASS"}


def test_no_report_is_caught_and_a_limit_at_once():
    limits = column("limits.md", 0)
    assert len(set(limits)) == len(limits)
    assert not set(limits) & {report for name in EXPECTED for report in reports(name)}
