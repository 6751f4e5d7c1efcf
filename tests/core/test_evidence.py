"""Evidence as values: JSON and back, keys, and the merge of several machines' files."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from opcheck.core.evidence import Described, Evidence, Manifest, asked, from_text, intact, key_of, merge, to_text

MANIFEST = Manifest(
    files={"ops/a.py": "1f"}, stats={"ops/a.py": (3, 5)}, folders={"ops": "2e"}, distributions={"torch": "2.13.0"},
    variables={"TRITON_DEBUG": "1"}, asked="3d",
)  # fmt: skip


def line(**changes):
    plain = Evidence(
        op="ops::a", backend="cpu", device="x86_64 CPU", level="standard", verdict="PASS", whole=True,
        thresholds={"numerics": {"float32": {"fudge_factor": 4.0}}}, used={"numerics float32": 0.25},
        case_ids=("ops::a[float32;n=4;normal;;;;0]@cpu",), finished="2026-11-30T12:00:00Z", manifest=MANIFEST,
    )  # fmt: skip
    changed = replace(plain, **changes)
    return replace(changed, key=key_of(changed.manifest, changed.backend, changed.capability))


DESCRIBED = Described(backend="cpu", ops={"ops::a": "ops/a.py:3"}, failures=(), manifest=MANIFEST)
DOCUMENT = {
    "registry": {"modules": ["ops"]}, "defaults": {"numerics": {"project_atol": 0.0}}, "gate": {"accept": ["PASS"]},
    "op": {"ops::a": {"kind": "scan"}, "ops::b": {"kind": "gather"}}, "waiver": [{"op": "ops::a"}],
}  # fmt: skip
ASKED = {"level": "standard", "seeds": (0,), "budget": None, "checks": ("ulp", "bias"), "case_ids": ("a", "b")}


def test_text_and_back():
    lines = (line(), line(op="ops::é\u2028", capability="sm_90", budget=2.5), DESCRIBED)
    assert from_text(to_text(lines)) == lines
    assert to_text(lines).count("\n") == 3


def test_what_another_opcheck_added_is_left_out():
    text = to_text([line()]).replace('{"again"', '{"colour": "blue", "again"')
    assert "colour" in text
    assert from_text(text) == (line(),)


@pytest.mark.parametrize(("text", "sentence"), [
    ("{", "f:2 is not JSON"),
    ("[]", "f:2 is not an object"),
    ('{"schema": 2}', "f:2 is of schema 2; this opcheck reads 1"),
    ("{}", "f:2 is of schema None; this opcheck reads 1"),
    ('{"schema": 1, "op": "ops::a"}', "f:2 is not evidence: "),
    ('{"schema": 1, "op": 3, "backend": "", "device": "", "level": "", "verdict": ""}', "f:2 is not evidence: op is 3"),
    ('{"schema": 1, "backend": "cpu", "manifest": []}', "f:2 is not evidence: "),
    ('{"schema": 1, "backend": "cpu", "manifest": {"files": ["a"]}}', "f:2 is not evidence: files is ['a']"),
    ('{"schema": 1, "backend": "cpu", "manifest": {"stats": {"a": [1]}}}', "f:2 is not evidence: "),
])  # fmt: skip
def test_a_line_that_is_none(text, sentence):
    with pytest.raises(ValueError, match="f:2 ") as error:
        from_text(f"{to_text([line()])}{text}\n", "f")
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize("name", [item.name for item in fields(Manifest) if item.name != "stats"])
def test_the_key_is_of_all_that_an_outcome_rests_on(name):
    other = replace(MANIFEST, **{name: "9" if name == "asked" else {"x": "9"}})
    assert key_of(other, "cpu", "") != key_of(MANIFEST, "cpu", "")
    assert intact(line())
    assert not intact(replace(line(), manifest=other))


def test_the_key_is_of_the_machine_and_not_of_times():
    assert key_of(MANIFEST, "cuda", "sm_90") not in (key_of(MANIFEST, "cpu", ""), key_of(MANIFEST, "cuda", "sm_100"))
    assert key_of(replace(MANIFEST, stats={}), "cpu", "") == key_of(MANIFEST, "cpu", "")


@pytest.mark.parametrize("changed", [
    {"op": {"ops::a": {"kind": "scan"}}}, {"waiver": []}, {"gate": {}}, {"registry": {"modules": ["ops", "more"]}},
    {"op": {"ops::a": {"kind": "scan"}, "ops::b": {"kind": "scan"}}},
])  # fmt: skip
def test_what_is_asked_of_others_is_not_asked_of_it(changed):
    assert asked({**DOCUMENT, **changed}, "ops::a", **ASKED) == asked(DOCUMENT, "ops::a", **ASKED)


@pytest.mark.parametrize("changed", [
    {"op": {"ops::a": {"kind": "gather"}}}, {"op": {}}, {"defaults": {}},
    {"op": {"ops::a": {"kind": "scan", "numerics": {"project_atol": 1e-9}}}},
])  # fmt: skip
def test_what_is_asked_of_it(changed):
    assert asked({**DOCUMENT, **changed}, "ops::a", **ASKED) != asked(DOCUMENT, "ops::a", **ASKED)


@pytest.mark.parametrize("changed", [
    {"level": "full"}, {"seeds": (1,)}, {"budget": 3.0}, {"checks": ("ulp",)}, {"case_ids": ("a",)},
])  # fmt: skip
def test_how_it_is_asked(changed):
    assert asked(DOCUMENT, "ops::a", **{**ASKED, **changed}) != asked(DOCUMENT, "ops::a", **ASKED)


def test_of_the_registry_only_the_modules_are_asked():
    plain = asked(DOCUMENT, "", **ASKED)
    assert asked({"registry": DOCUMENT["registry"]}, "", **ASKED) == plain
    assert asked({**DOCUMENT, "registry": {"modules": ["more"]}}, "", **ASKED) != plain


OLD, NEW = "2026-11-29T12:00:00Z", "2026-11-30T12:00:00Z"


class TestMerge:
    @pytest.mark.parametrize("turned", [False, True])
    def test_the_newer_counts(self, turned):
        files = [line(finished=OLD, verdict="FAIL")], [line(finished=NEW)]
        assert merge(*(files[::-1] if turned else files)) == (line(finished=NEW),)

    def test_of_two_as_old_the_later_file_counts(self):
        assert merge([line(verdict="FAIL")], [line()]) == (line(),)

    @pytest.mark.parametrize("other", [
        {"backend": "cuda", "capability": "sm_90"}, {"capability": "sm_100"}, {"level": "full"}, {"op": "ops::b"},
        {"whole": False},
    ])  # fmt: skip
    def test_machines_levels_ops_and_parts_stand_beside_each_other(self, other):
        found = merge([line(finished=NEW)], [line(finished=OLD, **other)])
        assert set(map(repr, found)) == set(map(repr, (line(finished=NEW), line(finished=OLD, **other))))

    def test_the_registry_is_one_of_them(self):
        newer = replace(DESCRIBED, finished=NEW)
        assert merge([DESCRIBED, line()], [newer]) == (newer, line())
        assert merge([replace(DESCRIBED, backend="cuda")], [DESCRIBED]) != (DESCRIBED,)

    def test_nothing(self):
        assert merge() == merge([], []) == ()
