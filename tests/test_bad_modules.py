"""What authors get wrong in a registry's modules: each is one sentence, closes the gate, and stops nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from opcheck.checks import limits_by_check
from opcheck.declared import load
from tests.command_line import Said, opcheck

HEAD = """
import torch
import opcheck

def reference(x):
    return x * 2

def samples(case):
    return opcheck.Sample(case.tensor("n", name="x"))

"""
OP = "(x: torch.Tensor) -> torch.Tensor: return x * 2"
BACKWARD = "f.register_autograd(lambda ctx, grad: grad * 2)"
TABLE = '[op."faults::{}"]\nkind = "contraction"\ndtypes = ["float32"]\ndims = ["n"]\n'


def op(name: str, signature: str = OP, **options: str) -> str:
    """A module that registers one op; its decorator stands in line 11."""
    given = {"reference": "reference", "samples": "samples", **options}
    named = ", ".join(f"{key}={value}" for key, value in given.items())
    return f'{HEAD}@opcheck.register("{name}", {named})\ndef f{signature}\n'


REFUSED = "importing faults.{0}: {{root}}/faults/{0}.py:11: faults::{0} cannot be registered: "

#: Module, its text, and the start of the sentence that lint says about it.
FAULTS = [
    ("raising", 'raise RuntimeError("no licence")',
     "importing faults.raising raised RuntimeError at {root}/faults/raising.py:1: no licence"),
    ("leaving", 'import sys\nsys.exit("not here")',
     "importing faults.leaving raised SystemExit at {root}/faults/leaving.py:2: not here"),
    ("interrupting", "raise KeyboardInterrupt",
     "importing faults.interrupting raised KeyboardInterrupt at {root}/faults/interrupting.py:1"),
    ("syntax", "import torch\ndef f(:\n    pass",
     "importing faults.syntax raised SyntaxError at {root}/faults/syntax.py:2: invalid syntax"),
    ("lacking", "import no_such_library",
     "importing faults.lacking raised ModuleNotFoundError at {root}/faults/lacking.py:1: No module named "
     "'no_such_library'"),
    ("dying", "import os\nos._exit(7)",
     "importing faults.dying ended the process: exited with status 7 without an answer"),
    ("crashing", "import ctypes\nctypes.string_at(0)",
     "importing faults.crashing ended the process at {root}/faults/crashing.py:2: killed by SIGSEGV"),
    ("twice", op("faults::again"),
     "importing faults.twice: {root}/faults/twice.py:11: faults::again is already registered at "
     "{root}/faults/once.py:11; rename one of them"),
    ("taken", op("aten::add"),
     "importing faults.taken: {root}/faults/taken.py:11: torch.ops.aten.add exists already; give the op another name"),
    ("malformed", op("softmax"),
     "importing faults.malformed: {root}/faults/malformed.py:11: 'softmax' is not an op name; it should read "
     "namespace::op, two Python identifiers"),
    ("number", f"{HEAD}opcheck.register(7, reference=reference, samples=samples)",
     "importing faults.number: {root}/faults/number.py:11: 7 is not an op name"),
    ("bare", f'{HEAD}@opcheck.register\ndef f{OP}',
     "importing faults.bare raised TypeError at {root}/faults/bare.py:11: register() missing 2 required keyword-only "
     "arguments: 'reference' and 'samples'"),
    ("no_samples", op("faults::no_samples", samples="None"),
     "importing faults.no_samples: {root}/faults/no_samples.py:11: faults::no_samples: samples is None; it should be a "
     "function"),
    ("text_reference", op("faults::text_reference", reference="'torch.softmax'"),
     "importing faults.text_reference: {root}/faults/text_reference.py:11: faults::text_reference: reference is "
     "'torch.softmax'; it should be a function"),
    ("instance", f'{HEAD}opcheck.register("faults::instance", reference=reference, samples=samples)(3)',
     "importing faults.instance: {root}/faults/instance.py:11: faults::instance: registered is a int; it should be a "
     "function with annotations, def instance(x: torch.Tensor) -> torch.Tensor"),
    ("mutating_autograd",
     op("faults::mutating_autograd", "(x: torch.Tensor) -> None: x.mul_(2)", mutates_args="['x']")
     + "f.register_autograd(lambda ctx, grad: grad)",
     "importing faults.mutating_autograd raised RuntimeError at {root}/faults/mutating_autograd.py:13: Cannot register "
     "autograd formula for non-functional operator"),
]  # fmt: skip

#: Module, signature, options, and the mend that its refusal names.
SIGNATURES = [
    ("unannotated", "(x) -> torch.Tensor: return x", {}, "annotate every parameter and the return, for example x: "),
    ("no_return", "(x: torch.Tensor): return x", {}, "annotate the return, for example -> torch.Tensor"),
    ("pair", "(x: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor: ...", {}, "take list[torch.Tensor] in place of"),
    ("table", "(x: torch.Tensor, o: dict) -> torch.Tensor: ...", {}, "take torch.Tensor, list[torch.Tensor], int, "),
    ("keyword", "(*, x: torch.Tensor) -> torch.Tensor: ...", {}, "a tensor may not be keyword-only: move it in front"),
    ("optional", "(x: torch.Tensor) -> torch.Tensor | None: ...", {}, "return torch.Tensor, a tuple or list of them"),
    ("text", "(x: torch.Tensor) -> str: ...", {}, "return torch.Tensor, a tuple or list of them"),
    ("star", "(*x: torch.Tensor) -> torch.Tensor: ...", {}, "name every parameter: custom ops take no *args"),
    ("unknown", "(x: 'Tensor') -> torch.Tensor: ...", {}, "import what the annotations name at the top of the module"),
    ("mutates", "(x: torch.Tensor) -> None: ...", {"mutates_args": "['y']"}, "mutates_args names parameters of the "),
    ("mutates_text", "(x: torch.Tensor) -> None: ...", {"mutates_args": "'x'"}, "mutates_args names parameters of the"),
    ("schema", OP, {"schema": "'(Tensor x -> Tensor'"}, "expected ) but found"),
    ("device", OP, {"device_types": "'gpu'"}, "Expected one of cpu, cuda, "),
]
for _name, _signature, _options, _mend in SIGNATURES:
    FAULTS.append((_name, op(f"faults::{_name}", _signature, **_options), REFUSED.format(_name) + _mend))


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """What lint said about the registry of all faults."""

    root: Path
    said: Said

    @property
    def sentences(self) -> list[str]:
        return self.said.err.splitlines()


def lay(root: Path, modules: Iterable[tuple[str, str]], declared: Iterable[str], *more: str) -> Path:
    """Write a registry with a package of modules, and return the path of its file."""
    (root / "faults").mkdir()
    (root / "faults/__init__.py").touch()
    for name, text in modules:
        (root / f"faults/{name}.py").write_text(text)
    tables = "".join(map(TABLE.format, declared))
    listed = ", ".join(f'"{name}"' for name in ("faults", *more))
    (root / "registry.toml").write_text(f"schema = 1\n[registry]\nmodules = [{listed}]\n{tables}")
    return root / "registry.toml"


@pytest.fixture(scope="module")
def linted(tmp_path_factory):
    root = tmp_path_factory.mktemp("faults")
    modules = [(name, text) for name, text, _ in FAULTS]
    right = [("once", op("faults::again")), ("undeclared", op("faults::undeclared"))]
    file = lay(root, [*modules, *right], ["again", "absent"], "no_such_package", "faults.no_such_module")
    return Linted(root=root, said=opcheck("lint", "--backend", "cpu", "--registry", str(file)))


@pytest.mark.parametrize(("module", "sentence"), [(name, sentence) for name, _, sentence in FAULTS])
def test_a_fault_is_one_sentence(linted, module, sentence):
    told = [line for line in linted.sentences if re.match(rf"importing faults\.{module}\b", line)]
    assert len(told) == 1
    assert told[0].startswith(sentence.format(root=linted.root))
    assert len(told[0]) < 500


@pytest.mark.parametrize("module", ["no_such_package", "faults.no_such_module"])
def test_a_module_that_does_not_exist(linted, module):
    assert (
        f"there is no module {module} in {linted.root} or elsewhere on the path; mend registry.modules in registry.toml"
    ) in linted.sentences


def test_declared_and_not_registered(linted):
    assert (
        "faults::absent is declared in registry.toml and not registered by faults, no_such_package, "
        "faults.no_such_module: register it or delete its table"
    ) in linted.sentences


def test_registered_and_not_declared(linted):
    assert (
        f"faults::undeclared is registered at {linted.root}/faults/undeclared.py:11 and not declared in registry.toml; "
        f"`opcheck lint` prints its table"
    ) in linted.sentences


def test_lint_says_nothing_else_and_closes_the_gate(linted):
    # An op whose autograd formula torch refuses is registered all the same, so it is named twice.
    undeclared = ("faults::undeclared", "faults::mutating_autograd")
    assert len(linted.sentences) == len(FAULTS) + 2 + 1 + len(undeclared)
    assert linted.said.status == 1
    assert "again" not in "".join(line for line in linted.sentences if "declared" in line)


def test_the_printed_tables_load_once_pasted(linted, tmp_path):
    pasted = tmp_path / "registry.toml"
    pasted.write_text((linted.root / "registry.toml").read_text() + linted.said.out)
    policy = load(pasted, limits_by_check())
    assert set(policy.ops) == {
        "faults::absent", "faults::again", "faults::undeclared", "faults::mutating_autograd",
    }  # fmt: skip


def test_the_rest_of_the_registry_is_audited_and_the_gate_closed(tmp_path):
    modules = [
        ("hanging", "import time\ntime.sleep(60)"),
        ("raising", FAULTS[0][1]),
        ("sound", f"{op('faults::sound')}{BACKWARD}"),
    ]
    file = lay(tmp_path, modules, ["sound"])
    said = opcheck(
        "audit", "--all", "--level", "quick", "--timeout", "2", "--check", "structure", "--backend", "cpu",
        "--registry", str(file),
    )  # fmt: skip
    assert said.out.startswith("faults::sound  PASS\n")
    assert f"CLOSED  importing faults.raising raised RuntimeError at {tmp_path}/faults/raising.py:1: no lic" in said.out
    hangs = (
        f"CLOSED  importing faults.hanging ended the process at {tmp_path}/faults/hanging.py:2: no answer within 2 s"
    )
    assert hangs in said.out
    assert said.out.endswith("1 PASS; may not merge (exit 1)\n")
    assert said.status == 1


def test_an_op_that_its_module_took_with_it_is_not_just_unknown(tmp_path):
    file = lay(tmp_path, [("raising", FAULTS[0][1])], ["lost"])
    said = opcheck("audit", "faults::lost", "--backend", "cpu", "--registry", str(file))
    assert said.status == 4
    assert said.err.splitlines() == [
        "opcheck: no op is called 'faults::lost'; known are none",
        f"importing faults.raising raised RuntimeError at {tmp_path}/faults/raising.py:1: no licence",
        "faults::lost is declared in registry.toml and not registered by faults: register it or delete its table",
    ]
