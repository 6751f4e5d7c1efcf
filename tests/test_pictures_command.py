"""`--format html` and `--pictures`: from a kernel that is wrong to a page and files, and what is refused before."""

import importlib.util
import json
from xml.etree import ElementTree

import pytest

from tests.command_line import ROOT
from tests.command_line import opcheck as call

BROKEN = ("audit", "--registry", str(ROOT / "tests/broken/registry.toml"), "--backend", "cpu", "-n", "1", "-q")
TAIL = "broken::tail_tile[float32;rows=3,cols=65;normal;;;;0]@cpu"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What an audit of one wrong case writes."""
    pytest.importorskip("jinja2", reason="the extra opcheck[report] is not installed")
    pytest.importorskip("matplotlib", reason="the extra opcheck[report] is not installed")
    folder = tmp_path_factory.mktemp("report")
    said = call(
        *BROKEN, "--case", TAIL, "--check", "structure", "--check", "numerics", "--format", f"html={folder}/page.html",
        "--format", f"json={folder}/report.json", "--pictures", str(folder / "pictures"),
    )  # fmt: skip
    assert said.status == 1
    return folder, said


def test_the_page_and_the_pictures_show_the_last_column(written):
    folder, said = written
    report = json.loads((folder / "report.json").read_text())
    (finding,) = (item for item in report["ops"][0]["cases"][0]["findings"] if item["pictures"])
    errors, counts = finding["pictures"]
    assert (errors["kind"], errors["down"], errors["across"], errors["extent"]) == (
        "error map",
        "rows",
        "cols",
        [3, 65],
    )
    assert all(line[-1] > 1 and max(line[:-1]) <= 1 for line in errors["cells"])
    assert sum(counts["target"]) == 195
    page = (folder / "page.html").read_text()
    assert page.count("<figure") == 2
    assert TAIL in page
    files = sorted(item.name for item in (folder / "pictures").iterdir())
    assert [name.partition("_numerics")[0] for name in files] == [
        "broken-tail_tile_out_error-map", "broken-tail_tile_out_histogram"
    ]  # fmt: skip
    for name in files:
        assert ElementTree.parse(folder / "pictures" / name).getroot().tag.endswith("svg")
    assert f"2 pictures in {folder / 'pictures'}" in said.err


@pytest.mark.parametrize("flags", [("--format", "html=page.html"), ("--pictures", "folder")])
def test_a_missing_library_is_told_before_the_audit(flags, monkeypatch, tmp_path):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else found(name))
    monkeypatch.chdir(tmp_path)
    said = call("audit", "--all", *flags)
    assert (said.status, said.out) == (4, "")
    flag = "--format html" if flags[0] == "--format" else "--pictures"
    assert said.err == f"opcheck: {flag} draws with matplotlib; install with: pip install 'opcheck[report]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("folder", "why"), [("file", "File exists"), ("no/such", "No such file or directory")])
def test_a_folder_that_cannot_be_is_told_before_the_audit(folder, why, monkeypatch, tmp_path):
    pytest.importorskip("jinja2", reason="the extra opcheck[report] is not installed")
    pytest.importorskip("matplotlib", reason="the extra opcheck[report] is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    said = call("audit", "--all", "--pictures", folder)
    assert (said.status, said.out, said.err) == (4, "", f"opcheck: cannot write pictures to {folder}: {why}\n")
