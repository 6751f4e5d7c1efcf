"""A report as JSON: what goes out comes back, strictly JSON, and no field more or less than its schema has."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

import opcheck
from opcheck.core.pictures import ErrorMap
from opcheck.core.report import case_from, finding_from, to_json, verdict_of
from opcheck.core.report_schema import _schema, json_schema
from opcheck.core.verdict import Verdict
from opcheck.render.formats.json import render
from tests.core.reports import (
    FAIL,
    INCONCLUSIVE,
    LIMITED,
    PASS,
    case,
    cases,
    failing,
    finding,
    findings,
    passing,
    report,
    reports,
)

SHIPPED = Path(opcheck.__file__).parent / "schemas" / "report.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def strict(text):
    """Read JSON as its standard has it: without NaN, and with each key once."""

    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


def same(a, b):
    """Equal, with NaN equal to NaN: `repr` writes every float exactly."""
    return repr(a) == repr(b)


@settings(deadline=None)
@given(cases)
def test_a_case_comes_back_from_json(case):
    data = strict(json.dumps(to_json(case), allow_nan=False))
    again = case_from(data)
    assert same(to_json(again), to_json(case))
    assert type(again) is type(case)
    assert [same(a, b) for a, b in zip(again.tensors, case.tensors, strict=True)] == [True] * len(case.tensors)
    assert [(f.check, f.verdict, f.detail) for f in again.findings] == [
        (f.check, f.verdict, f.detail) for f in case.findings
    ]
    assert (again.id, again.verdict, again.skipped, again.seconds) == (
        case.id,
        case.verdict,
        case.skipped,
        case.seconds,
    )


@settings(deadline=None)
@given(findings)
def test_a_finding_comes_back_from_json(item):
    again = finding_from(strict(json.dumps(to_json(item))))
    assert same(sorted(again.numbers.items()), sorted((key, float(value)) for key, value in item.numbers.items()))
    assert all(getattr(again, name) == getattr(item, name) for name in ("check", "tensor", "verdict", "law", "waived"))
    assert same(again.pictures, item.pictures)


def keys_sorted(value):
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(keys_sorted, value.values()))
    return all(map(keys_sorted, value)) if isinstance(value, list) else True


@settings(deadline=None, max_examples=50)
@given(reports)
def test_every_report_is_strict_sorted_and_valid(audited):
    text = render(audited)
    assert text == render(audited)
    assert text.endswith("}\n")
    data = strict(text)
    assert keys_sorted(data)
    assert keys_sorted(to_json(audited))
    VALIDATOR.validate(data)


@pytest.mark.parametrize(("number", "written"), [
    (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (0.1, 0.1), (0.0, 0.0), (5e-324, 5e-324),
])  # fmt: skip
def test_non_finite_numbers_are_strings(number, written):
    item = finding(numbers={"threshold": number})
    assert to_json(item)["numbers"]["threshold"] == written
    assert same(finding_from(to_json(item)).numbers["threshold"], number)


def test_the_shipped_schema_is_the_one_generated():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    expected = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    assert SHIPPED.read_text(encoding="utf-8") == expected, "write json_schema() of opcheck.core.report_schema to it"


def test_the_fields_that_the_design_promises():
    """Design, section 3: the JSON report."""
    data = strict(render(report(passing(), failing(), verdict=FAIL, exit_status=1)))
    VALIDATOR.validate(data)
    assert data.keys() >= {"schema", "environment", "policy_digest", "verdict", "exit_status", "ops"}
    op = data["ops"][1]
    assert op.keys() >= {"op", "verdict", "backend", "cases", "limitations", "not_covered", "stages"}
    case = op["cases"][2]
    assert case.keys() >= {"id", "verdict", "tensors", "findings"}
    assert case["tensors"][0] == {
        "tensor": "out", "dtype": "float16", "reference_error": 0.2, "target_error": 0.3,
        "reference_relative_error": 0.2, "rounding_floor": 3.1e-5, "threshold": 2 * 0.2 + 3.1e-5,
        "protocol_threshold": 2 * 0.2 + 3.1e-5, "condition": 1531.0, "gate_valid": False, "verdict": "INCONCLUSIVE",
        "scale": 0.0, "decoy": "", "decoy_distance": "Infinity",
    }  # fmt: skip
    assert data["ops"][0]["cases"][0]["tensors"][0]["condition"] == "NaN"


def test_kernels_are_in_the_json_where_they_were_recorded():
    assert "kernels" not in strict(render(report(passing())))
    data = strict(render(report(passing(), kernels=())))
    assert data["kernels"] == []
    data["kernels"] = None
    assert not VALIDATOR.is_valid(data)


def places(value, path=()):
    """Every object in the JSON, by its path."""
    if isinstance(value, dict):
        yield path, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


FREE = {"environment", "skipped", "numbers", "stages", "contract"}  # objects whose keys are data


def test_a_line_of_a_picture_is_a_line_of_the_file():
    cells = ((0.0, math.inf, 1e-05), (math.nan, -2.5, 1e300))
    drawn = ErrorMap(
        unit="[\n  1,\n  2\n]", size=1.0, shape=(2, 3), down="r", across="c", extent=(2, 3), block=(1, 1), tile=(0, 0),
        cells=cells,
    )  # fmt: skip
    audited = report(replace(passing(), cases=(case("ops::x", FAIL, findings=(finding(pictures=(drawn,)),)),)))
    text = render(audited)
    assert '[0.0, "Infinity", 1e-05]' in text
    assert '["NaN", -2.5, 1e+300]' in text
    assert strict(text) == to_json(audited)


def test_nothing_additional_and_nothing_missing_is_valid():
    data = strict(render(report(failing(), verdict=FAIL, exit_status=1)))
    for path, found in places(data):
        if path and path[-1] in FREE:
            continue
        found["additional"] = 1
        assert not VALIDATOR.is_valid(data), path
        del found["additional"]
        for key in list(found):
            kept = found.pop(key)
            assert not VALIDATOR.is_valid(data), (*path, key)
            found[key] = kept
    VALIDATOR.validate(data)


@pytest.mark.parametrize(("path", "value"), [
    (("schema",), 2), (("exit_status",), 6), (("exit_status",), "0"), (("verdict",), "OK"), (("level",), "slow"),
    (("complete",), 1), (("ops",), {}), (("ops", 0, "stages"), {"basic correctness": "maybe"}),
    (("ops", 0, "stages"), {"basics": "holds"}), (("ops", 0, "limitations"), "none"), (("problems",), [1]),
    (("ops", 0, "cases", 0, "seconds"), "nan"), (("ops", 0, "cases", 0, "tensors", 0, "gate_valid"), 1.0),
    (("ops", 0, "cases", 0, "tensors", 0, "threshold"), None), (("environment",), {"torch": 2.13}),
])  # fmt: skip
def test_a_wrong_value_is_not_valid(path, value):
    data = strict(render(report(failing(), verdict=FAIL, exit_status=1)))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert not VALIDATOR.is_valid(data)


@dataclass(frozen=True)
class Strange:
    field: set[str]


@pytest.mark.parametrize("hint", [set[str], str | None, tuple[int, int], object, Strange])
def test_a_type_that_has_no_place_in_a_report_is_refused(hint):
    with pytest.raises(TypeError, match="has no place in a report"):
        _schema(hint, {})


@pytest.mark.parametrize("verdict", Verdict)
def test_a_waived_finding_is_a_limitation(verdict):
    assert verdict_of((finding(verdict=verdict),)) is verdict
    assert verdict_of((finding(verdict=verdict, waived="known"),)) is (PASS if verdict is PASS else LIMITED)
    assert verdict_of((finding(verdict=FAIL), finding(verdict=verdict, waived="known"))) is FAIL
    assert verdict_of(()) is INCONCLUSIVE
