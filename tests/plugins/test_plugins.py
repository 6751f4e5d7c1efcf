"""A registry that an installed wheel brings along: found by its entry point, audited, and left out on demand."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from opcheck.session.plugins import plugins
from tests.command_line import opcheck

OPS = '''"""Adopts what the wheel is for."""

import torch
from opcheck import Sample, adopt


def half(x):
    return x / 2


adopt(
    half,
    name="brought::half",
    reference=lambda x: x * 0.5,
    golden=lambda x: x * 0.5,
    samples=lambda case: Sample(case.tensor("n", name="x")),
)
'''
TABLE = """
kind = "elementwise"
dtypes = ["float32"]
dims = ["n"]
empty = ["n"]
"""
REGISTRY = f'schema = 1\n[registry]\nmodules = ["brought.ops"]\n[op."brought::half"]{TABLE}'
OWN = f'schema = 1\n[registry]\nmodules = ["own"]\n[op."own::half"]{TABLE}'


def wheel(folder, value="brought", name="brought"):
    """Write a wheel by hand, as a build back end would."""
    about = f"{name}_opcheck-1.2.dist-info"
    files = {
        f"{name}/__init__.py": "raise AssertionError('only workers may import this')" if name == "sly" else "",
        f"{name}/ops.py": OPS,
        f"{name}/registry.toml": REGISTRY,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}-opcheck\nVersion: 1.2\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[opcheck.registries]\n{name} = {value}\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{item},,\n" for item in files)
    path = folder / f"{name}_opcheck-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for item, text in files.items():
            archive.writestr(item, text)
    return path


def install(path, target):
    """Do what installing a pure wheel is: unpack it."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(target)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The wheel is on the path, of this process and of its workers, and the working folder is empty."""
    target = tmp_path / "site"
    install(wheel(tmp_path), target)
    monkeypatch.syspath_prepend(target)
    monkeypatch.setenv("PYTHONPATH", f"{target}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("OPCHECK_DISABLE_PLUGINS", raising=False)
    return tmp_path


def test_it_is_found_audited_and_named(installed):
    said = opcheck("audit", "--all", "--level", "quick", "--backend", "cpu", "--format", "json")
    report = json.loads(said.out)
    assert said.status == 0, said.err
    assert [(op["op"], op["verdict"]) for op in report["ops"]] == [("brought::half", "PASS")]
    assert report["environment"]["plugins"] == "brought (brought-opcheck 1.2)"


def test_it_is_left_out(installed, monkeypatch):
    said = opcheck("audit", "--all", "--no-plugins")
    assert said.status == 4
    assert "no registry.toml in" in said.err
    monkeypatch.setenv("OPCHECK_DISABLE_PLUGINS", "1")
    assert opcheck("audit", "--all").status == 4
    assert plugins() == ()


def test_it_stands_beside_the_registry_of_the_working_folder(installed):
    work = installed / "work"
    (work / "registry.toml").write_text(OWN)
    (work / "own.py").write_text(OPS.replace("brought::half", "own::half"))
    both = opcheck("list", "--backend", "cpu")
    assert "own::half" in both.out
    assert "brought::half" in both.out
    assert "CLOSED" not in both.out
    alone = opcheck("list", "--backend", "cpu", "--no-plugins")
    assert "own::half" in alone.out
    assert "brought::half" not in alone.out


def test_an_op_is_declared_once(installed):
    work = installed / "work"
    (work / "registry.toml").write_text(OWN.replace("own::half", "brought::half"))
    said = opcheck("audit", "--all")
    assert said.status == 4
    assert (
        f"brought::half is declared in {work}/registry.toml and in {installed}/site/brought/registry.toml" in said.err
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("absent", "there is no package absent"),
        ("brought.absent", "there is no package brought.absent"),
        ("brought:registry", "it should name a package alone, without ':registry'"),
        ("json", f"there is no registry.toml in {os.path.dirname(json.__file__)}"),
    ],
)
def test_an_entry_point_that_names_no_registry_is_one_sentence(tmp_path, monkeypatch, value, why):
    install(wheel(tmp_path, value), tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    said = opcheck("audit", "--all", "--registry", str(tmp_path / "site" / "brought" / "registry.toml"))
    assert said.status == 4
    expected = f"plug-in brought (brought-opcheck 1.2): opcheck.registries has the value '{value}'; {why}; --no-plugins"
    assert expected in said.err
    assert len(said.err.splitlines()) == 1


def test_listing_them_imports_nothing_of_theirs(tmp_path):
    install(wheel(tmp_path, "sly", "sly"), tmp_path)
    code = (
        "import sys; from opcheck.session.plugins import plugins; "
        "print(*plugins(), 'sly' in sys.modules, 'torch' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    environment.pop("OPCHECK_DISABLE_PLUGINS", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "sly (sly-opcheck 1.2) False False\n", done.stderr
