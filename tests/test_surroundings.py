"""Paths of annotations start at the repository, wherever opcheck is called; the job's page is appended to, bounded."""

import pytest

from opcheck.commands.output import Target, write
from opcheck.commands.surroundings import MOST, view_of
from opcheck.render.view import Spot, View, spot
from tests.core.reports import FAIL, failing, report

WRONG = report(failing(), verdict=FAIL, exit_status=1)


@pytest.mark.parametrize(("place", "view", "expected"), [
    ("ops/k.py:9", View(), "ops/k.py:9"),
    ("./ops/../ops/k.py:9", View(), "ops/k.py:9"),
    ("k.py:9", View(root="/r", folder="a/b"), "a/b/k.py:9"),
    ("../k.py:9", View(root="/r", folder="a/b"), "a/k.py:9"),
    ("/r/a/k.py:9", View(root="/r", folder="a/b"), "a/k.py:9"),
    ("a b:c/k.py:9", View(), "a b:c/k.py:9"),
    ("../../../k.py:9", View(root="/r", folder="a/b"), None),
    ("/else/k.py:9", View(root="/r"), None),
    ("/rest/k.py:9", View(root="/r"), None),
    ("/r/k.py:9", View(), None),
    ("k.py", View(), None), ("k.py:", View(), None), ("k.py:0", View(), None), ("k.py:-1", View(), None),
    ("k.py:9x", View(), None), ("k.py:\u0663", View(), None), ("k.py:" + "9" * 5000, View(), None), ("", View(), None),
    (":9", View(), None), (" :9", View(), None), ("a\nb.py:9", View(), None), ("\x1b[31m:9", View(), None),
    ("\u202ek.py:9", View(), None), ("x" * 2000 + ":9", View(), None),
])  # fmt: skip
def test_a_place_in_the_repository(place, view, expected):
    found = spot(place, view)
    assert (None if found is None else str(found)) == expected


def test_a_place_is_two_values():
    assert spot("/r/k.py:12", View(root="/r")) == Spot(file="k.py", line=12)


@pytest.mark.parametrize(("git", "root", "folder"), [(".", ".", "a/b"), ("a", "a", "b"), (None, "a", "b")])
def test_the_repository_is_the_nearest_with_a_git_folder(tmp_path, monkeypatch, git, root, folder):
    (tmp_path / "a/b").mkdir(parents=True)
    if git is not None:
        (tmp_path / git / ".git").touch()  # of a worktree it is a file
    monkeypatch.chdir(tmp_path / "a/b")
    view = view_of(contracts=tmp_path / "a/registry.toml")
    assert (view.root, view.folder) == (str((tmp_path / root).resolve()), folder)
    assert str(spot(f"{view.contracts}:1", view)) == ("a/registry.toml:1" if root == "." else "registry.toml:1")


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return tmp_path / "summary.md"


def written(tmp_path, name="github"):
    return write(WRONG, (Target(format=name, file=tmp_path / "report"),), verbosity=0)


def test_annotations_bring_the_page_of_the_job(tmp_path, page):
    page.write_text("before\n")
    assert written(tmp_path)
    text = page.read_text()
    assert text.startswith("before\n<!-- opcheck -->\n### opcheck: may not merge\n")
    assert "FAIL numerics ops::softmax grad x" in text
    assert (tmp_path / "report").read_text().startswith("::error file=ops/softmax/kernel.py,line=9,")


@pytest.mark.parametrize("left", [0, 10, 700])
def test_the_page_stays_within_what_github_takes(tmp_path, page, left):
    page.write_bytes(b"x" * (MOST - left))
    assert written(tmp_path)
    assert page.stat().st_size <= MOST
    assert (page.stat().st_size > MOST - left) == (left == 700)


def test_other_formats_write_no_page(tmp_path, page):
    assert written(tmp_path, "markdown")
    assert not page.exists()


def test_a_page_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none/summary.md"))
    assert written(tmp_path)
    assert "cannot write GITHUB_STEP_SUMMARY" in capsys.readouterr().err
