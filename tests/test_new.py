"""`opcheck new`: what it writes passes, and it writes over nothing."""

import subprocess
import sys

import pytest

from opcheck.commands.new import KINDS
from tests.command_line import ROOT, opcheck

QUICK = ("--level", "quick", "--backend", "cpu", "--budget", "0", "-k", "normal")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_kind_passes_beside_the_others(folder):
    for kind in KINDS:
        said = opcheck("new", f"demo::{kind}_op", "--kind", kind)
        assert said.status == 0, said.err
        assert said.out.splitlines()[-1] == f"now: python -m opcheck audit demo::{kind}_op"
    written = {str(path.relative_to(folder)) for path in folder.rglob("*.*")}
    assert {"registry.toml", "demo/__init__.py", "tests/test_demo_reduction_op.py"} <= written
    assert {f"demo/elementwise_op/{name}.py" for name in ("__init__", "kernel", "reference")} <= written
    audited = opcheck("audit", "--all", *QUICK)
    assert audited.status == 0, audited.out + audited.err
    assert f": {len(KINDS)} PASS; may merge" in audited.out
    lint = [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), "--ignore", "ANN", "demo"]
    assert subprocess.run(lint, cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_its_own_test_passes_and_fails_when_the_kernel_is_wrong(folder):
    assert opcheck("new", "demo::scale").status == 0
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert subprocess.run(run, cwd=folder, capture_output=True, check=False).returncode == 0
    kernel = folder / "demo" / "scale" / "kernel.py"
    kernel.write_text(kernel.read_text().replace("value * factor, mask=at < n)", "value * factor, mask=at < n - 1)"))
    failed = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "now run: python -m opcheck audit --registry" in failed.stdout


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("scale", "'scale' is not an op name; it should read namespace::op"),
        ("demo::1st", "'demo::1st' is not an op name"),
        ("demo::../x", "'demo::../x' is not an op name"),
        ("demo::class", "'demo::class' is not an op name: class is a word of Python's own"),
        ("demo::scale", "demo::scale is declared in"),
        ("other::scale", "demo/scale/__init__.py exists already; nothing was written"),
    ],
)
def test_a_bad_or_taken_name_writes_nothing(folder, name, says):
    assert opcheck("new", "demo::scale").status == 0
    before = snapshot(folder)
    said = opcheck("new", name)
    assert said.status == 4
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert snapshot(folder) == before


def test_a_folder_that_would_hide_a_package_is_refused(folder):
    said = opcheck("new", "torch::scale")
    assert said.status == 4
    assert "would hide the package torch that is installed; give --package NAME" in said.err
    assert snapshot(folder) == {}
    assert opcheck("new", "torch::scale", "--package", "kernels_of_mine").status == 0
    assert (folder / "kernels_of_mine" / "scale" / "kernel.py").exists()


def test_a_registry_that_is_there_is_added_to_and_kept(folder):
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").touch()
    text = 'schema = 1\n[registry]\nmodules = ["mine"]  # a comment'
    (folder / "registry.toml").write_text(text)
    assert opcheck("new", "demo::scale").status == 0
    after = (folder / "registry.toml").read_text()
    assert after.startswith(f'{text}\n[op."demo::scale"]\n')
    assert (folder / "mine" / "scale" / "kernel.py").exists()
    said = opcheck("new", "demo::other", "--package", "elsewhere")
    assert "has no 'elsewhere'; add it there, or give --package one of mine" in said.err
