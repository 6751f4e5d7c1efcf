"""What source leads to, without an import: kernels that are reached and not, oracles that mean the same and not."""

from __future__ import annotations

import textwrap

import pytest

from opcheck.merge.kernels import points
from opcheck.merge.modules import Project
from opcheck.merge.oracle import Meaning
from opcheck.merge.registrations import registrations
from opcheck.merge.tree import module_names, python_files

REGISTER = """
import opcheck
@opcheck.register("p::op", reference=abs, samples=abs)
def op(x):
    return {body}
"""
JIT = """
import triton
@triton.jit
def {name}(x):
    pass
"""


def project(files):
    return Project(lambda path: textwrap.dedent(files[path]).encode() if path in files else None)


def modules(found, files, roots=("p",)):
    named = (found.module(name) for name in module_names(files, roots))
    return tuple(module for module in named if module is not None)


def unregistered(files):
    found = project(files)
    held = modules(found, files)
    return sorted(
        point.sentence.split(" kernel ")[1].split(" is ")[0]
        for point in points(found, held, registrations(found, held))
    )


REACHED = {
    "launched by the op": {"p.py": JIT.format(name="k") + REGISTER.format(body="k[(1,)](x)")},
    "of a module beside it": {
        "p/__init__.py": "from . import kernel" + REGISTER.format(body="kernel.forward(x)"),
        "p/kernel.py": JIT.format(name="k") + "def forward(x):\n    return k[(1,)](x)\n",
    },
    "imported under another name": {
        "p/__init__.py": "from .kernel import k as launched" + REGISTER.format(body="launched[(1,)](x)"),
        "p/kernel.py": JIT.format(name="k"),
    },
    "by its full name": {
        "p/__init__.py": "import p.deep.kernel" + REGISTER.format(body="p.deep.kernel.k[(1,)](x)"),
        "p/deep/__init__.py": "",
        "p/deep/kernel.py": JIT.format(name="k"),
    },
    "by a star, through another package": {
        "p/__init__.py": "from .all import *" + REGISTER.format(body="k[(1,)](x)"),
        "p/all.py": "from .kernel import *",
        "p/kernel.py": JIT.format(name="k"),
    },
    "imported in a function": {
        "p/__init__.py": REGISTER.format(body="run(x)")
        + "def run(x):\n    from .kernel import k\n    return k[(1,)](x)\n",
        "p/kernel.py": JIT.format(name="k"),
    },
    "a whole module imported in a function": {
        "p/__init__.py": REGISTER.format(body="run(x)")
        + "def run(x):\n    from . import kernel\n    return kernel.k[(1,)](x)\n",
        "p/kernel.py": JIT.format(name="k"),
    },
    "chosen from a table": {
        "p.py": JIT.format(name="k") + "KERNELS = {'a': k}\n" + REGISTER.format(body="KERNELS['a'][(1,)](x)"),
    },
    "put into a table later": {
        "p.py": JIT.format(name="k")
        + "KERNELS = {}\nKERNELS['a'] = k\n"
        + REGISTER.format(body="KERNELS['a'][(1,)](x)"),
    },
    "in a backward that is added": {
        "p.py": JIT.format(name="k")
        + REGISTER.format(body="x")
        + "def backward(ctx, grad):\n    return k[(1,)](grad)\nop.register_autograd(backward)\n",
    },
    "in what is added by a decorator": {
        "p.py": JIT.format(name="k")
        + REGISTER.format(body="x")
        + "@op.register_kernel('cuda')\ndef _(x):\n    return k[(1,)](x)\n",
    },
    "in an autograd function": {
        "p.py": JIT.format(name="k")
        + "import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n"
        + "    def forward(ctx, x):\n        return k[(1,)](x)\n"
        + REGISTER.format(body="F.apply(x)"),
    },
    "of an op that is adopted": {
        "p.py": JIT.format(name="k") + "from opcheck import adopt\ndef run(x):\n    return k[(1,)](x)\n"
        "adopt(run, name='p::run', reference=abs, samples=abs)\n",
    },
    "autotuned, and a device function": {
        "p.py": "import triton\n@triton.jit\ndef twice(v):\n    return v\n@triton.autotune(configs=[], key=[])\n"
        "@triton.heuristics({})\n@triton.jit(debug=True)\ndef k(x):\n    twice(x)\n"
        + REGISTER.format(body="k[(1,)](x)"),
    },
    "under a condition": {
        "p.py": "try:\n    import triton\n    if True:\n        @triton.jit\n        def k(x):\n            pass\n"
        + "except ImportError:\n    k = None\n"
        + REGISTER.format(body="k[(1,)](x)"),
    },
    "registered in a loop": {
        "p.py": JIT.format(name="k")
        + "import opcheck\nfor name in 'ab':\n"
        + "    opcheck.register(f'p::{name}', reference=abs, samples=abs)(lambda x: k[(1,)](x))\n",
    },
    "modules that import each other": {
        "p/__init__.py": "from .a import k" + REGISTER.format(body="k(x)"),
        "p/a.py": "from .b import k\n",
        "p/b.py": "from .a import k\n",
    },
}  # fmt: skip
UNREACHED = {
    "launched by nothing": {"p.py": JIT.format(name="k") + REGISTER.format(body="x")},
    "of an op that is not registered with opcheck": {
        "p.py": JIT.format(name="k")
        + REGISTER.format(body="x")
        + "import torch\n@torch.library.custom_op('p::other', mutates_args=())\ndef other(x):\n    return k[(1,)](x)\n",
    },
    "launched by a function that nothing calls": {
        "p.py": JIT.format(name="k") + REGISTER.format(body="x") + "def run(x):\n    return k[(1,)](x)\n",
    },
    "in a subpackage that nothing imports": {
        "p/__init__.py": REGISTER.format(body="x"), "p/new/__init__.py": JIT.format(name="k"),
    },
    "jit by another name, and a parameter that has the kernel's": {
        "p.py": "from triton import jit as compiled\n@compiled\ndef k(x):\n    pass\n" + REGISTER.format(body="x"),
    },
    "made by a call": {
        "p.py": "import triton\ndef body(x):\n    pass\nk = triton.jit(body)\n" + REGISTER.format(body="x"),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REACHED)
def test_a_kernel_that_an_op_leads_to(name):
    assert unregistered(REACHED[name]) == []


@pytest.mark.parametrize("name", UNREACHED)
def test_a_kernel_that_no_op_leads_to(name):
    (found,) = unregistered(UNREACHED[name])
    assert found.endswith(".k")


def test_what_an_import_would_not_walk_is_not_looked_at():
    files = {"p/__init__.py": "", "p/loose/kernel.py": JIT.format(name="k"), "q.py": JIT.format(name="k")}
    assert unregistered(files) == []
    assert module_names(files, ("p", "q", "missing")) == ("p", "q")


def test_jit_of_another_library_is_no_kernel():
    assert (
        unregistered({"p.py": "from numba import jit\n@jit\ndef k(x):\n    pass\n" + REGISTER.format(body="x")}) == []
    )


def test_files_on_disk_and_files_of_a_commit_name_the_same_modules(tmp_path):
    for path in ("p/__init__.py", "p/a.py", "p/b/__init__.py", "p/b/c.py", "p/d/e.py", "one.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    files = python_files(tmp_path, ("p", "one"))
    assert module_names(files, ("p", "one")) == ("p", "p.a", "p.b", "p.b.c", "one")


def test_a_file_that_is_not_python_is_named():
    found = project({"p.py": "def f(:\n"})
    assert found.module("p") is None
    assert found.broken == {"p.py": "invalid syntax (p.py, line 1)"}


def meaning(text, name="f", **others):
    files = {"p.py": text, **{f"{module}.py": source for module, source in others.items()}}
    found = project(files)
    from opcheck.merge.modules import Node

    return Meaning.of(found).node(Node("p", name))


PLAIN = "import torch\ndef f(x, eps=1e-6):\n    return torch.exp(x + eps)\n"
SAME = {
    "annotated, documented, laid out": (
        'import torch\n\n\ndef f(\n    x: int, eps: float = 0.000001\n) -> int:\n    """Do."""\n'
        "    # Why.\n    return (torch.exp(x + eps))\n"
    ),
    "torch by another name": "import torch as th\ndef f(x, eps=1e-6):\n    return th.exp(x + eps)\n",
    "exp imported by itself": "from torch import exp\ndef f(x, eps=1e-6):\n    return exp(x + eps)\n",
    "beside something new": PLAIN + "def g(x):\n    return x\n",
}  # fmt: skip
OTHER = {
    "another function": PLAIN.replace("exp", "exp2"),
    "another function under the same name": (
        "from torch import exp2 as exp\ndef f(x, eps=1e-6):\n    return exp(x + eps)\n"
    ),
    "another default": PLAIN.replace("1e-6", "1e-5"),
    "another sign": PLAIN.replace("+", "-"),
    "a decorator": PLAIN.replace("def f", "@torch.no_grad()\ndef f"),
    "less": PLAIN.replace("return torch.exp(x + eps)", "pass"),
    "gone": "import torch\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_same_oracle(name):
    assert meaning(SAME[name]) == meaning(PLAIN)


@pytest.mark.parametrize("name", OTHER)
def test_another_oracle(name):
    assert meaning(OTHER[name]) != meaning(PLAIN)


def test_an_oracle_means_what_it_calls():
    calls = "from q import g\ndef f(x):\n    return g(x)\n"
    before = meaning(calls, q="def g(x):\n    return x + h\nh = 1\n")
    assert meaning(calls, q="def g(x):\n    return x + h\nh = 2\n") != before
    assert meaning(calls, q="h = 1\ndef g(x):\n    return x + h\nunused = 3\n") == before
    assert meaning("def f(x):\n    return g(x)\ndef g(x):\n    return x + h\nh = 1\n") == before
    assert (
        meaning("import q\ndef f(x):\n    return q.other(x)\n", q="def other(x):\n    return x + k\nk = 1\n") == before
    )


def test_recursion_ends():
    assert meaning("def f(x):\n    return f(x - 1) if x else g(x)\ndef g(x):\n    return f(x)\n")


def test_a_name_that_a_function_makes_itself_is_its_own():
    shadowed = "def f(g):\n    return g + 1\ndef g(x):\n    return {}\n"
    assert meaning(shadowed.format(1)) == meaning(shadowed.format(2))


@pytest.mark.parametrize(("call", "name"), [
    ('opcheck.register("p::a", reference=abs, samples=abs)', "p::a"),
    ('opcheck.register(name="p::a", reference=abs, samples=abs)', "p::a"),
    ('opcheck.adopt(torch.ops.aten.add, reference=abs, samples=abs)', "aten::add"),
    ('opcheck.adopt(torch.ops.aten.add.Tensor, reference=abs, samples=abs)', "aten::add.Tensor"),
    ('opcheck.adopt(abs, name="p::abs", reference=abs, samples=abs)', "p::abs"),
    ('opcheck.adopt("p::abs", reference=abs, samples=abs)', "p::abs"),
    ('opcheck.register(NAME, reference=abs, samples=abs)', ""),
])  # fmt: skip
def test_the_name_of_a_registration(call, name):
    files = {"p.py": f"import opcheck\nimport torch\n{call}\n"}
    found = project(files)
    (item,) = registrations(found, modules(found, files))
    assert (item.op, set(item.roles), item.line) == (name, {"reference", "samples"}, 3)


def test_a_register_of_something_else_is_none():
    files = {"p.py": "import atexit, opcheck\natexit.register(abs)\nopcheck.verify(abs, abs, ())\nregister('p::a')\n"}
    found = project(files)
    assert registrations(found, modules(found, files)) == ()
