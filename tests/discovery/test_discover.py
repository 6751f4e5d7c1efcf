"""What is told of a package that knows nothing of opcheck: `outside`, beside the tests of `adopt`."""

import sys
from pathlib import Path

import pytest

from opcheck.commands.discover import lines
from opcheck.discovery import discover
from opcheck.discovery.draft import TABLE, draft
from opcheck.discovery.reach import Reach
from opcheck.discovery.source import modules_of
from opcheck.errors import UnknownOp
from opcheck.session import workers_environment
from tests.command_line import opcheck

PUBLISHED = Path(__file__).parents[1] / "adopted"


def on_path(monkeypatch, folder):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", ":".join(item for item in sys.path if item))


@pytest.fixture(scope="module")
def outside():
    with pytest.MonkeyPatch.context() as monkeypatch:
        on_path(monkeypatch, PUBLISHED)
        return discover("outside", environment=workers_environment("cpu"))


def test_every_operator_is_there_with_what_is_known_of_it(outside):
    found = {
        item.name: (item.kernels, item.fake, item.autograd, [name.rpartition(".")[2] for name in item.launches])
        for item in outside.operators
    }
    assert found == {
        "outside::halves": (("CPU",), False, False, []),
        "outside::nowhere": ((), False, False, []),
        "outside::scale": (("any",), True, True, ["scale_kernel"]),
        "outside::shift_": (("any",), True, False, []),
        "outside::twice": ((), False, False, []),
        "outside::twice.scaled": ((), False, False, []),
    }
    schemas = {item.name: item.schema for item in outside.operators}
    assert schemas["outside::shift_"] == "outside::shift_(Tensor(a0!) x, float by) -> ()"


def test_callables_and_kernels_are_read_from_the_source(outside):
    found = {item.name: (item.kind, [p.name for p in item.parameters]) for item in outside.callables}
    assert found == {
        "outside.Square": ("autograd", ["x"]),
        "outside.Weighted": ("autograd", ["x", "weight", "keep"]),
        "outside.launched": ("function", ["x", "factor"]),
    }
    assert [item.name for item in outside.kernels] == ["outside.scale_kernel"]


def test_the_report_says_it_in_words(outside):
    text = "\n".join(lines(outside))
    assert "outside: 6 operators, 2 autograd.Functions, 1 other function launching kernels, 1 Triton kernel" in text
    assert "  outside::scale(Tensor x, float factor) -> Tensor\n    kernels: any; has a fake; has a backward; " in text
    assert "    kernels: none here; no fake; no backward; launches nothing that is seen" in text
    assert "  outside.Weighted(x, weight, keep=False)  __init__.py:" in text


def test_a_draft_is_python_and_toml(outside):
    code, _, table = draft(outside, "outside::scale").partition(TABLE)
    compile(code, "draft", "exec")
    assert "import outside  # noqa: F401 - registers it\n" in code
    assert "def reference(x, factor):\n" in code
    assert 'x=case.tensor("rows", "cols", name="x"),\n' in code
    assert "factor=1.0,  # choose\n" in code
    assert "adopt(torch.ops.outside.scale, reference=reference, samples=samples)" in code
    assert table.startswith('\n[op."outside::scale"]\nkind = ')

    code, _, table = draft(outside, "Weighted").partition(TABLE)
    assert "from outside import Weighted\n" in code
    assert "def reference(x, weight, keep=False):\n" in code
    assert "adopt(Weighted, reference" in code
    assert '[op."outside::Weighted"]' in table


def test_a_name_that_nothing_has_is_one_sentence(outside):
    with pytest.raises(UnknownOp, match=r"called 'Weigted'; did you mean Weighted\?"):
        draft(outside, "Weigted")


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("missing_one", None, "there is no package 'missing_one' to import; install it into the environment"),
        ("import-linter", None, "there is no package 'import-linter' to import; the distribution import-linter has "),
        ("raises", "print('hello')\n1 / 0", "importing raises raised ZeroDivisionError: division by zero"),
        ("ends", "import os\nprint('{')\nos._exit(7)", "importing ends: it ended the process: exited with status 7"),
    ],
)
def test_a_package_that_cannot_be_imported_is_one_sentence(tmp_path, monkeypatch, name, source, says):
    if source is not None:
        (tmp_path / f"{name}.py").write_text(source)
    on_path(monkeypatch, tmp_path)
    said = opcheck("discover", name)
    assert said.status == 4
    assert said.err.startswith(f"opcheck: {says}")
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


FILES = {
    "__init__.py": "from .ops import entry as public\nfrom .broken import nothing",
    "broken.py": "def broken(:",
    "kernels.py": """
import triton
from triton import jit
NAME = "pack"

@jit
def helper(x): ...

@triton.autotune(configs=[], key=[])
@triton.jit(do_not_specialize=["n"])
def used(x, n): helper(x)

@triton.jit
def unused(x): ...
""",
    "ops.py": """
import torch
from torch.library import wrap_triton
from . import kernels
from .kernels import used as kernel, NAME
if torch.cuda.is_available():
    @torch.library.custom_op(f"{SPACE}::op", mutates_args=())
    def conditional(x: torch.Tensor) -> torch.Tensor:
        return inner(x)
SPACE = "space"
def inner(x): kernels.used[(1,)](x, 1)
def entry(x):
    def nested(): wrap_triton(kernel)[(1,)](x, 1)
    return nested()
def other(x): return torch.ops.space.raw(x)
torch.library.register_kernel("space::raw", "cpu")(inner)
class Kept(torch.autograd.Function):
    @classmethod
    def forward(cls, ctx, x, n: int = 3): return other(x)
""",
}


@pytest.fixture
def package(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return modules_of("pack", tmp_path)


def test_source_that_is_no_python_is_named(package):
    modules, problems = package
    assert [problem.partition(" cannot be read")[0] for problem in problems] == ["broken.py"]
    assert sorted(modules) == ["pack", "pack.kernels", "pack.ops"]
    assert [name for name, module in modules.items() if module.makes_ops] == ["pack.ops"]


def test_kernels_are_reached_through_imports_calls_and_operators(package):
    reach = Reach(modules=package[0])
    assert reach.implementations("space::op") == (("pack.ops", "conditional"),)
    assert reach.implementations("space::raw") == (("pack.ops", "inner"),)
    reach.bodies = {"space::raw": (("pack.ops", "inner"),)}
    used = ("pack.kernels.used",)
    for name in ("conditional", "inner", "entry", "other", "Kept"):
        assert reach.kernels(("pack.ops", name)) == used, name
    assert reach.launched(("pack.ops", "inner")) == used
    assert reach.launched(("pack.ops", "other")) == ()
    kept = reach.definition(("pack.ops", "Kept"))
    assert [(item.name, item.type, item.default) for item in kept.parameters] == [("x", "", ""), ("n", "int", "3")]
    assert reach.definition(("pack.kernels", "used")).tuned
    assert reach.definition(("pack.kernels", "helper")).kind == "kernel"
