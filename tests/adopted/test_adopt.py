"""What others published, in every way in which kernels are, adopted as it is and audited."""

import functools
import json
import re
from pathlib import Path

import pytest
import torch

from opcheck import adopt, registry, spec
from opcheck.errors import RegistrationError
from tests.command_line import opcheck

REGISTRY = Path(__file__).parent / "registry.toml"
PLAIN = "torch.library.opcheck, fakes and torch.compile: the target is a plain callable, not a torch.library op"
NO_FAKE = "fakes, test_faketensor, test_aot_dispatch_dynamic and torch.compile: the op has no fake"
COMPOSITE = "a reference or golden that calls the op itself: the op is composite, and a call of it is not seen"
MODULE = "gradients of the module's own parameters (weight): only its arguments are inputs"


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The report of the ordinary cases of every adopted op, at the level that has all four tests of torch."""
    file = tmp_path_factory.mktemp("adopted") / "report.json"
    said = opcheck(
        "audit", "--all", "-k", "129 and normal;;;;0", "--budget", "0", "--registry", str(REGISTRY),
        f"--format=json={file}", "--backend", "cpu",
    )  # fmt: skip
    assert said.status == 1, said.err
    return {op["op"]: op for op in json.loads(file.read_text())["ops"]}


VERDICTS = {
    "aten::layer_norm": "PASS",
    "aten::softmax.int": "PASS",
    "mine::add": "PASS",
    "outside::Gate": "PASS",
    "outside::Square": "FAIL",
    "outside::Weighted": "PASS",
    "outside::halves": "PASS",
    "outside::nowhere": "INCONCLUSIVE",
    "outside::overwrite": "PASS",
    "outside::scale": "PASS",
    "outside::shift_": "PASS",
}


def test_each_gets_its_verdict(audited):
    assert {name: op["verdict"] for name, op in audited.items()} == VERDICTS


def test_the_wrong_gradient_is_what_fails(audited):
    failed = {
        (item["check"], item["tensor"])
        for case in audited["outside::Square"]["cases"]
        for item in case["findings"]
        if item["verdict"] == "FAIL"
    }
    assert failed == {("numerics", "grad x")}


@pytest.mark.parametrize(
    ("op", "missing"),
    [
        ("aten::softmax.int", COMPOSITE),
        ("mine::add", PLAIN),
        ("outside::Gate", PLAIN),
        ("outside::Gate", MODULE),
        ("outside::Weighted", PLAIN),
        ("outside::halves", NO_FAKE),
        ("outside::nowhere", "cpu: the op has no kernel for it"),
    ],
)
def test_what_cannot_be_checked_is_said(audited, op, missing):
    assert missing in audited[op]["not_covered"]


@pytest.mark.parametrize(
    ("op", "tests"),
    [
        ("outside::scale", "schema autograd_registration faketensor aot_dispatch_dynamic"),
        ("outside::shift_", "schema autograd_registration faketensor aot_dispatch_dynamic"),
        ("aten::layer_norm", "schema autograd_registration faketensor aot_dispatch_dynamic"),
        ("outside::halves", "schema autograd_registration"),
        ("outside::Weighted", ""),
    ],
)
def test_torch_itself_is_asked_what_it_can_be(audited, op, tests):
    said = {
        item["detail"].removeprefix("test_")
        for case in audited[op]["cases"]
        for item in case["findings"]
        if item["check"] == "library"
    }
    assert said == set(tests.split())


@pytest.mark.parametrize(
    ("op", "tensors"),
    [
        ("outside::Weighted", {"out 0", "grad x"}),
        ("outside::halves", {"out 0", "out 1", "grad x"}),
        ("outside::shift_", {"x"}),
        ("mine::add", {"out", "grad x", "grad others[0]", "grad others[1]"}),
        ("aten::layer_norm", {"out", "grad input", "grad weight", "grad bias"}),
    ],
)
def test_every_tensor_is_judged(audited, op, tensors):
    assert {row["tensor"] for case in audited[op]["cases"] for row in case["tensors"]} == tensors


def test_they_are_listed_and_linted_as_others_are():
    listed = opcheck("list", "--registry", str(REGISTRY), "--backend", "cpu")
    assert re.search(
        r"outside::overwrite +elementwise +float32 +no \(mutates\) +\S+ops_adopted/__init__.py:\d+", listed.out
    )
    assert "CLOSED" not in listed.out


class Cubed(torch.autograd.Function):
    """A function whose parameters have names."""

    @staticmethod
    def forward(ctx, x, *, by=3):
        return x**by


def anything(*args):
    return args[0]


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Nothing that a test adopts is there for another."""
    monkeypatch.setattr(registry, "_SPECS", {})


def samples(case):
    raise AssertionError


def test_what_is_adopted_is_what_comes_back():
    function = adopt(Cubed, reference=torch.abs, samples=samples, name="mine::cubed")
    assert function is Cubed
    assert spec(Cubed) is spec("mine::cubed")
    assert [item.name for item in spec(Cubed).arguments] == ["x", "by"]
    assert spec(Cubed).place.file == __file__
    assert spec(Cubed).module == __name__


@pytest.mark.parametrize(
    ("op", "settings", "says"),
    [
        (torch.ops.aten.softmax, {}, "torch.ops.aten.softmax has the overloads int, int_out; give one"),
        ("aten::no_such_thing", {}, "torch knows no operator 'aten::no_such_thing'; import the package that registers"),
        ("not a name", {}, "torch knows no operator 'not a name'"),
        (3, {}, "3 cannot be called; give a torch.ops operator, an autograd.Function or a function"),
        (lambda x: x, {}, "what is adopted has no name of its own; give one, name='namespace::op'"),
        (anything, {"name": "softmax"}, "'softmax' is not an op name; it should read namespace::op"),
        (anything, {"reference": None}, "reference is None; it should be a function"),
        (anything, {"reference": anything}, "reference is the op itself, which proves nothing"),
        (Cubed, {"golden": Cubed.apply}, "golden is the op itself, which proves nothing"),
        (torch.ops.aten.gelu, {"reference": torch.ops.aten.gelu.default}, "reference is the op itself"),
        (torch.ops.aten.gelu, {"mutates_args": ["self"]}, "its schema says what it mutates; leave out mutates_args"),
        (samples, {"mutates_args": ["x"]}, "mutates_args names 'x'; the parameters are case"),
        (anything, {"mutates_args": ["x"]}, "mutates_args names 'x'; the parameters are not told by the target"),
    ],
    ids=lambda value: "" if callable(value) or isinstance(value, dict) else None,
)  # fmt: skip
def test_a_misuse_is_one_sentence_with_its_place(op, settings, says):
    with pytest.raises(RegistrationError) as caught:
        adopt(op, **{"reference": torch.abs, "samples": samples, **settings})
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{__file__}:")
    assert "\n" not in str(caught.value)


def test_a_name_is_given_once():
    one, other = functools.partial(anything, 1), functools.partial(samples, 2)
    adopt(one, reference=torch.abs, samples=samples, name="mine::one")
    adopt(one, reference=torch.abs, samples=samples, name="mine::one")
    adopt(one, reference=torch.abs, samples=samples, name="mine::two")
    with pytest.raises(RegistrationError, match=r"mine::one is already registered at .*; rename one of them"):
        adopt(other, reference=torch.abs, samples=samples, name="mine::one")
    with pytest.raises(RegistrationError, match=r"exists already; give the op another name, or opcheck.adopt it"):
        registry.register("aten::gelu", reference=torch.abs, samples=samples)(anything)
