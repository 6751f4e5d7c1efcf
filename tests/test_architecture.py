"""What the layers promise: imports point down, the core is pure, and importing opcheck is cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import opcheck

PACKAGE = Path(opcheck.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 400  # lines

# What a pure module may not name, and why.
IMPURE_MODULES = {
    "random", "time", "tempfile", "subprocess", "multiprocessing", "socket", "shutil", "glob", "secrets", "threading",
}  # fmt: skip
IMPURE_NAMES = {
    "torch.library", "torch.Generator", "torch.rand", "torch.randn", "torch.randint", "torch.randperm",
    "torch.rand_like", "torch.randn_like", "torch.manual_seed", "torch.cuda", "torch.load", "torch.save",
    "datetime.datetime.now", "datetime.datetime.today", "datetime.date.today", "datetime.now", "date.today",
    "os.environ", "os.getenv", "open", "print", "input",
}  # fmt: skip
IMPURE_METHODS = {
    "read_text", "read_bytes", "write_text", "write_bytes", "now", "today", "uniform_", "normal_", "random_",
    "bernoulli_", "exponential_",
}  # fmt: skip


def dotted(node):
    """`a.b.c` of an attribute chain that starts at a name, else nothing."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def for_types_only(tree):
    """Every node below `if TYPE_CHECKING:`."""
    guarded = [node for node in ast.walk(tree) if isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING"]
    return {id(inner) for node in guarded for statement in node.body for inner in ast.walk(statement)}


def annotations(tree):
    """Every node of an annotation of an argument or a result."""
    found = [getattr(node, field, None) for node in ast.walk(tree) for field in ("annotation", "returns")]
    return {id(inner) for node in found if node is not None for inner in ast.walk(node)}


def imports(tree):
    """The full name of everything imported at run time, with its line."""
    skipped = for_types_only(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((item.name, node.lineno) for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{item.name}", node.lineno) for item in node.names)


def impurities(source):
    """What of a module's source a pure module may not do, with the lines."""
    tree = ast.parse(source)
    for name, line in imports(tree):
        if name.split(".")[0] in IMPURE_MODULES or any(f"{name}.".startswith(f"{bad}.") for bad in IMPURE_NAMES):
            yield line, name
    skipped = annotations(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if any(f"{name}.".startswith(f"{bad}.") for bad in IMPURE_NAMES):
            yield node.lineno, name
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in IMPURE_METHODS:
            yield node.lineno, node.func.attr


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda path: path.stem)
def test_the_core_is_pure(path):
    assert not list(impurities(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("source", [
    "import torch.library", "from torch import library", "from torch.library import custom_op", "import random",
    "from random import random", "import time", "from time import perf_counter", "torch.library.custom_op('x')",
    "x = torch.rand(3)", "g = torch.Generator()", "torch.rand_like(x)", "x.normal_()", "torch.manual_seed(0)",
    "open('x')", "Path('x').read_text()", "path.write_bytes(b'')", "datetime.now()", "datetime.datetime.now()",
    "datetime.date.today()", "from datetime import date\ndate.today()", "os.environ['x']", "import subprocess",
    "torch.cuda.synchronize()", "print(1)",
])  # fmt: skip
def test_an_impure_module_is_caught(source):
    assert list(impurities(source))


@pytest.mark.parametrize("source", [
    "import torch\ntorch.where(a, b, c)", "if TYPE_CHECKING:\n    import time",
    "import datetime\ndatetime.date(2026, 1, 1)", "def f(g: torch.Generator) -> torch.Generator: ...",
    "from opcheck.core.library import x", "x.round()", "reopen(x)", "def f(g: torch.Tensor): ...",
])  # fmt: skip
def test_a_pure_module_is_not(source):
    assert not list(impurities(source))


@pytest.mark.parametrize("folder", ["checks", "render", "declared"])
def test_what_judges_and_prints_imports_no_torch(folder):
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        tops = {name.split(".")[0] for name, _ in imports(ast.parse(path.read_text(encoding="utf-8")))}
        assert not tops & {"torch", "triton", "numpy", "ml_dtypes"}, path


HEAVY = ("torch", "triton", "numpy", "ml_dtypes")


def loaded_by(statement):
    """The heavy modules that a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("statement", [
    "import opcheck",
    "from opcheck import Case, Sample, Verdict, AuditReport, OpcheckError, AuditFailed",
    "from opcheck.checks import all_checks; all_checks()",
    "import opcheck.auditor, opcheck.render.text, opcheck.render.formats.json, opcheck.declared",
    "import opcheck.cli",
])  # fmt: skip
def test_torch_is_not_imported_before_it_is_needed(statement):
    assert loaded_by(statement) == []


def test_torch_would_be_noticed():
    assert "torch" in loaded_by("import opcheck.core.measure")


def test_every_public_name_is_there():
    assert sorted(opcheck.__all__) == opcheck.__all__
    for name in opcheck.__all__:
        assert getattr(opcheck, name) is not None
    assert set(opcheck.__all__) <= set(dir(opcheck))
    with pytest.raises(AttributeError, match="has no attribute 'verfy'"):
        _ = opcheck.verfy


def test_imports_point_down():
    tool = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_file_is_long_and_each_says_what_it_is_for(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= LONGEST
    assert not source or ast.get_docstring(ast.parse(source))
