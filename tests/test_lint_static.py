"""`lint --static` sees in the source what `lint` sees in the modules, and imports neither them nor torch."""

import subprocess
import sys

import pytest

from tests.command_line import ROOT, opcheck

HEAD = 'schema = 1\n[registry]\nmodules = ["my_ops"]\n'
TABLE = '[op."{}"]\nkind = "elementwise"\ndtypes = ["float32"]\ndims = ["n"]\n'
RIGHT = "import opcheck\n@opcheck.register('{}', reference=f, samples=g)\ndef op(x): ...\n"
AGREE = "1 ops: registry.toml and the source agree; nothing was imported\n"


def lint(root, declared, more="", **modules):
    (root / "my_ops/inner").mkdir(parents=True)
    for folder in ("my_ops", "my_ops/inner"):
        (root / folder / "__init__.py").touch()
    for name, text in modules.items():
        (root / "my_ops" / f"{name.replace('__', '/')}.py").write_text(text)
    (root / "registry.toml").write_text(HEAD + "".join(map(TABLE.format, declared)) + more)
    return opcheck("lint", "--static", "--registry", str(root / "registry.toml"))


@pytest.mark.parametrize("source", [
    RIGHT.format("my::op"),
    RIGHT.format("my::op").replace("opcheck.", "").replace("import opcheck", "from opcheck import register"),
    "import opcheck\nopcheck.register(name='my::op', reference=f, samples=g)(target)\n",
    "import opcheck, torch\nopcheck.adopt(torch.ops.my.op, reference=f, samples=g)\n",
    "import opcheck, torch\nopcheck.adopt(torch.ops.my.op.default, reference=f, samples=g)\n",
    "import opcheck, torch\nopcheck.adopt(torch.ops.their.op, name='my::op', reference=f, samples=g)\n",
    RIGHT.format("my::op") + "raise SystemExit('imported')\n",
    RIGHT.format("my::op") + "codecs.register(search)\natexit.register(print)\n",
])  # fmt: skip
@pytest.mark.parametrize("module", ["op", "inner__op"])
def test_what_agrees(tmp_path, source, module):
    said = lint(tmp_path, ["my::op"], **{module: source})
    assert (said.status, said.out, said.err) == (0, "", AGREE)


def test_registered_and_not_declared(tmp_path):
    said = lint(tmp_path, ["my::op"], op=RIGHT.format("my::op"), other=RIGHT.format("my::new"))
    assert said.err == (
        "my::new is registered at my_ops/other.py:2 and not declared in registry.toml; `opcheck lint` prints its "
        "table\n"
    )
    assert '[op."my::new"]' in said.out
    assert said.status == 1


def test_declared_and_not_registered(tmp_path):
    said = lint(tmp_path, ["my::op", "my::gone"], op=RIGHT.format("my::op"))
    sentence = "my::gone is declared in registry.toml and not registered by my_ops: register it or delete its table\n"
    assert (said.status, said.err) == (1, sentence)


def test_a_name_that_is_computed_may_be_any(tmp_path):
    computed = "import opcheck\nfor name in names:\n    opcheck.register(f'my::{name}', reference=f, samples=g)(h)\n"
    said = lint(tmp_path, ["my::op", "my::gone"], op=RIGHT.format("my::op"), others=computed)
    assert said.err == (
        "the name registered at my_ops/others.py:3: the source does not say; `opcheck lint` imports the "
        "modules\n"
        "2 ops: registry.toml and the source agree; nothing was imported\n"
    )
    assert said.status == 0


@pytest.mark.parametrize(("modules", "more", "sentence"), [
    ({"op": RIGHT.format("my::op"), "two": RIGHT.format("my::op")}, "",
     "my_ops/two.py:2: my::op is already registered at my_ops/op.py:2; rename one of them"),
    ({"op": RIGHT.format("my::op"), "bad": "def f(:\n"}, "",
     "my_ops/bad.py is not Python: invalid syntax (bad.py, line 1)"),
    ({"op": RIGHT.format("my::op"), "bad": "x = '\0'\n"}, "", "my_ops/bad.py"),
    ({"op": RIGHT.format("my::op")}, '[[waiver]]\nop = "my::op"\ncheck = "ulp"\nreason = "x"\nuntil = 2020-01-01\n',
     "has expired: mend the op, or give a new date and reason"),
    ({"op": RIGHT.format("my::op")}, "[gate]\nacept = []\n", "registry.toml: gate.acept"),
])  # fmt: skip
def test_what_is_wrong_is_one_sentence(tmp_path, modules, more, sentence):
    said = lint(tmp_path, ["my::op"], more, **modules)
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.status in (1, 4)


def test_a_module_that_is_not_there(tmp_path):
    (tmp_path / "registry.toml").write_text(HEAD)
    said = opcheck("lint", "--static", "--registry", str(tmp_path / "registry.toml"))
    assert said.err == f"there is no source of module my_ops in {tmp_path}; mend registry.modules\n"
    assert said.status == 1


def test_this_repository_agrees_and_no_torch_is_imported():
    code = (
        "import sys\nfrom opcheck.cli import main\nstatus = main(['lint', '--static'])\n"
        "heavy = {'torch', 'triton', 'numpy', 'ml_dtypes', 'ops', 'opcheck.session'} & set(sys.modules)\n"
        "print(status, *heavy)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "0\n", done.stdout + done.stderr
