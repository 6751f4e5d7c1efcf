"""What the worker says that an op rests on, for every way in which Python lets one file use another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opcheck.run.project import Project
from tests.command_line import ROOT

#: Imports the modules of a project as a worker does, and prints what each of them rests on.
SCRIPT = """
import json, sys
from opcheck.run.closure import closure
from opcheck.run.modules import import_modules, put_on_path
from opcheck.run.project import Project
from opcheck.run.watching import Watch

root, package, *modules = sys.argv[1:]
put_on_path(root)
watch = Watch(Project(root))
watch.start()
with watch.importing():
    assert not import_modules([package])
found = {}
for name in modules:
    rests = closure([f"{package}.{name}"], watch)
    found[name] = [sorted(path.removeprefix(f"{package}/") for path in rests.files), sorted(rests.others)]
watch.take()
exec("import pathlib; pathlib.Path(%r).read_text()" % f"{root}/late.toml")
print(json.dumps({"rests": found, "late": watch.take()}))
"""

FILES = {
    "__init__.py": "from . import other_op",
    "other_op.py": "",
    "helper.py": "from .deeper import thing",
    "deeper.py": "thing = 1",
    "lazy.py": "",
    "named.py": "",
    "loaded.py": "",
    "data.toml": "x = 1",
    "kernel.cu": "// cuda",
    "sub/__init__.py": "",
    "sub/inner.py": "from .. import helper",
    "plain.py": "import json, os.path",
    "by_from.py": "from . import helper",
    "by_name_of_it.py": "from .helper import thing",
    "by_star.py": "from .deeper import *",
    "absolute.py": "import pack.deeper",
    "of_package.py": "import pack",
    "in_function.py": "def f():\n    from .lazy import anything",
    "under_condition.py": "import typing\nif typing.TYPE_CHECKING:\n    from . import lazy",
    "at_run_time.py": 'import importlib\nimportlib.import_module("pack." + "loaded")\n',
    "at_run_time_again.py": 'import importlib\nfor x in ("loaded",):\n    importlib.import_module(f".{x}", "pack")\n',
    "at_call.py": 'import importlib\ndef f():\n    return importlib.import_module(".named", "pack")\n',
    "reads.py": 'import pathlib\npathlib.Path(__file__).with_name("data.toml").read_text()\n',
    "reads_elsewhere.py": 'import numpy\nopen(__file__.replace("reads_elsewhere.py", "kernel.cu")).read()\n',
    "reads_by_helper.py": 'from .reads import pathlib\n',
    "writes.py": 'open(__file__ + ".out", "w").close()\n',
    "cycle_a.py": "from . import cycle_b",
    "cycle_b.py": "from . import cycle_a",
    "nested.py": "from .sub import inner",
    "broken_name.py": "try:\n    from .missing import x\nexcept ImportError:\n    pass",
    "others.py": "import tabulate",
}  # fmt: skip

HELPER = ["deeper.py", "helper.py"]
EXPECTED = {
    "plain": [],
    "by_from": HELPER,
    "by_name_of_it": HELPER,
    "by_star": ["deeper.py"],
    "absolute": ["deeper.py"],
    "of_package": ["other_op.py"],
    "in_function": ["lazy.py"],
    "under_condition": ["lazy.py"],
    "at_run_time": ["loaded.py"],
    "at_run_time_again": ["loaded.py"],
    "at_call": ["named.py"],
    "reads": ["data.toml"],
    "reads_elsewhere": ["kernel.cu"],
    "reads_by_helper": ["data.toml", "reads.py"],
    "writes": [],
    "cycle_a": ["cycle_b.py"],
    "cycle_b": ["cycle_a.py"],
    "nested": [*HELPER, "sub/__init__.py", "sub/inner.py"],
    "broken_name": [],
    "others": [],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("watched")
    for name, source in FILES.items():
        path = root / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (root / "late.toml").write_text("")
    call = [sys.executable, "-c", SCRIPT, str(root), "pack", *EXPECTED]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert not done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_module_rests_on(found, name):
    files, _ = found["rests"][name]
    assert files == sorted(["__init__.py", f"{name}.py", *EXPECTED[name]])


def test_distributions_are_named_by_what_is_imported(found):
    assert found["rests"]["others"][1] == ["tabulate"]
    assert found["rests"]["reads_elsewhere"][1] == ["numpy"]
    assert found["rests"]["plain"][1] == []


def test_what_is_read_later_is_told_apart(found):
    assert found["late"] == ["late.toml"]


class TestProject:
    @pytest.mark.parametrize("path", ["a.py", "ops/kernel.cu", "data/x.toml", "new/../a.py"])
    def test_its_own(self, tmp_path, path):
        assert Project(str(tmp_path)).read(str(tmp_path / path)) == str(Path(path.rpartition("../")[2]))

    @pytest.mark.parametrize("path", [
        "../a.py", ".git/HEAD", ".opcheck/evidence/x", "ops/__pycache__/a.pyc", ".venv/lib/x.py",
        "env/lib/site-packages/x/y.py", ".",
    ])  # fmt: skip
    def test_not_its_own(self, tmp_path, path):
        assert Project(str(tmp_path / "root")).read(str(tmp_path / "root" / path)) == ""

    def test_a_module_may_lie_beside_the_root(self, tmp_path):
        assert Project(str(tmp_path / "root")).module("lib.a", str(tmp_path / "lib/a.py")) == "../lib/a.py"

    @pytest.mark.parametrize(("name", "file"), [
        ("json", json.__file__), ("pytest", pytest.__file__), ("torch.x", "/src/torch/x.py"), ("frozen", ""),
        ("opcheck.cli", str(ROOT / "opcheck/cli.py")),
    ])  # fmt: skip
    def test_what_is_installed_has_a_version(self, tmp_path, name, file):
        assert Project(str(tmp_path)).module(name, file) == ""
