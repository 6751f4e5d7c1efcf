"""The pytest plug-in, in processes of its own: each check of each op is a test, and nothing is loaded unasked."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import opcheck
from opcheck import AuditFailed, assert_ok
from tests.core.reports import FAIL, failing, passing, report

ROOT = Path(opcheck.__file__).parents[1]
INSTALLED = any(item.value == "opcheck.pytest_plugin" for item in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "opcheck.pytest_plugin")

OPS = """
import torch
import opcheck
from opcheck import Sample

def register(name, factor):
    @opcheck.register(name, reference=lambda x: x * 2, golden=lambda x: x + x,
                      samples=lambda case: Sample(case.tensor("n", name="x")))
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * factor
    double.register_fake(lambda x: torch.empty_like(x))
    double.register_autograd(lambda ctx, grad: grad * 2)

register("tiny::right", 2)
register("tiny::wrong", 2.5)
"""
REGISTRY = """
schema = 1
[registry]
modules = ["tiny_ops"]
"""
TABLE = """
[op."tiny::{}"]
kind = "contraction"
dtypes = ["float32"]
dims = ["n"]
empty = ["n"]
sizes = {{ n = [4] }}
nonfinite = {{ undefined = "few cases are enough" }}
"""
WAIVER = """
[[waiver]]
op = "tiny::wrong"
check = "numerics"
reason = "known"
until = 2099-01-01
"""
OWN = """
import opcheck
import pytest

def test_own(opcheck_audit):
    report = opcheck_audit("tiny::right", checks=("structure",))
    opcheck.assert_ok(report)
    assert opcheck_audit("tiny::right", checks=("structure",)) is report
"""


def lay(folder, *more):
    (folder / "tiny_ops.py").write_text(OPS)
    (folder / "registry.toml").write_text(REGISTRY + TABLE.format("right") + TABLE.format("wrong") + "".join(more))
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests/test_other.py").write_text("def test_other():\n    pass\n")
    (folder / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nfilterwarnings = error\naddopts = --strict-markers\n"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project that has been audited once, two checks of two ops, with everything that is asked of pytest."""
    folder = tmp_path_factory.mktemp("project")
    lay(folder)
    (folder / "tests/test_own.py").write_text(OWN)
    return folder


def run(folder, *arguments):
    return subprocess_pytest(folder, *PLUGIN, "--opcheck-level=quick", "--opcheck-backend=cpu", *arguments)


def subprocess_pytest(folder, *arguments):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=folder, env=environment, text=True, capture_output=True,
        timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def audited(folder):
    chosen = "numerics or stress or test_other or test_own or gate"
    return run(folder, "--opcheck", "-rA", "-k", chosen, "--junitxml=junit.xml")


def outcomes(done):
    return {name: state for state, name in re.findall(r"^(PASSED|FAILED|XFAIL|ERROR) (\S+)", done.stdout, re.MULTILINE)}


def test_each_check_of_each_op_has_an_outcome(audited, folder):
    assert outcomes(audited) == {
        "tests/test_other.py::test_other": "PASSED", "tests/test_own.py::test_own": "PASSED",
        "registry.toml::tiny::right::numerics": "PASSED", "registry.toml::tiny::wrong::numerics": "FAILED",
        "registry.toml::gate": "PASSED",
    }, audited.stdout + audited.stderr  # fmt: skip
    line = next(at for at, text in enumerate((folder / "registry.toml").read_text().splitlines(), 1) if "wrong" in text)
    assert f"registry.toml:{line}: an op is put under stress at the level full" in audited.stdout
    assert "1 failed, 4 passed, 2 skipped" in audited.stdout
    assert audited.returncode == 1


def test_a_failure_is_what_opcheck_prints_without_a_traceback(audited):
    assert "FAIL numerics  tiny::wrong[float32;n=4;normal;;;;0]@cpu  out" in audited.stdout
    assert "again: python -m opcheck audit --backend cpu --case 'tiny::wrong[" in audited.stdout
    assert "Traceback" not in audited.stdout
    assert "pytest_audits.py" not in audited.stdout


def test_junit_has_a_test_for_each(audited, folder):
    assert audited.returncode == 1
    tests = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    states = {(test.get("classname"), test.get("name")): [part.tag for part in test] for test in tests}
    assert states["registry.toml.tiny.wrong", "numerics"] == ["failure"]
    assert states["registry.toml.tiny.right", "numerics"] == []


def test_the_last_failed_are_found_again(audited, folder):
    assert audited.returncode == 1
    done = run(folder, "--opcheck", "--lf", "--co", "-q")
    assert done.stdout.splitlines()[0] == "registry.toml::tiny::wrong::numerics"
    assert "1/" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(("arguments", "ids"), [
    (("-k", "right and (bias or ulp)"), ["registry.toml::tiny::right::bias", "registry.toml::tiny::right::ulp"]),
    (("registry.toml::tiny::wrong::memory",), ["registry.toml::tiny::wrong::memory"]),
    ((".", "-k", "gate or other"), ["registry.toml::gate", "tests/test_other.py::test_other"]),
    (("tests", "-k", "gate or other"), ["registry.toml::gate", "tests/test_other.py::test_other"]),
    (("tests/test_other.py::test_other",), ["tests/test_other.py::test_other"]),
])  # fmt: skip
def test_what_is_selected(folder, arguments, ids):
    done = run(folder, "--opcheck", "--co", "-q", "-p", "no:cacheprovider", *arguments)
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert sorted(found) == ids, done.stdout + done.stderr


@pytest.mark.slow
def test_two_workers_audit_each_op_once(tmp_path):
    lay(tmp_path, WAIVER)
    (tmp_path / "conftest.py").write_text(f"""
import opcheck.session as session
audit = session.Session.audit
def counted(self, progress):
    with open({str(tmp_path / "audits")!r}, "a") as file:
        file.write(" ".join(self.options.ops) + "\\n")
    return audit(self, progress)
session.Session.audit = counted
""")
    done = run(tmp_path, "--opcheck", "-rA", "-n", "2", "-k", "numerics or structure or determinism")
    assert {name.partition("@")[0]: state for name, state in outcomes(done).items()} == {
        **{f"registry.toml::tiny::right::{check}": "PASSED" for check in ("numerics", "structure", "determinism")},
        **{f"registry.toml::tiny::wrong::{check}": "PASSED" for check in ("structure", "determinism")},
        "registry.toml::tiny::wrong::numerics": "XFAIL",
    }, done.stdout + done.stderr
    assert "waived: known (until 2099-01-01)" in done.stdout
    assert done.returncode == 0
    assert sorted((tmp_path / "audits").read_text().split()) == ["tiny::right", "tiny::wrong"]


def test_nothing_is_loaded_unasked(folder):
    (folder / "test_loaded.py").write_text(
        "import sys\ndef test_loaded():\n"
        "    heavy = {'torch', 'triton', 'numpy', 'tabulate', 'opcheck.session', 'opcheck.pytest_audits'}\n"
        "    assert not heavy & set(sys.modules)\n"
        "    assert 'opcheck.pytest_plugin' in sys.modules\n"
    )
    done = run(folder, "-q", "test_loaded.py")
    assert done.returncode == 0, done.stdout


def test_no_registry_is_one_sentence(tmp_path):
    done = run(tmp_path, "--opcheck")
    assert done.returncode == 4
    assert "ERROR: --opcheck: no registry.toml in" in done.stderr
    done = run(tmp_path, "--opcheck", "--opcheck-registry", "none.toml")
    assert done.returncode == 4
    assert "--opcheck-registry: there is no file none.toml" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_assert_ok_raises_the_printed_report():
    assert_ok(report(passing()))
    with pytest.raises(AuditFailed) as raised:
        assert_ok(report(failing(), verdict=FAIL, exit_status=1))
    assert "FAIL, exit status 1\nops::softmax  FAIL\n" in str(raised.value)
    assert "looks like: the tail of the last tile" in str(raised.value)
    with pytest.raises(AuditFailed):
        assert_ok(report(passing(), exit_status=2, complete=False))
