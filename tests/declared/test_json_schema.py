"""The JSON Schema says of a file what the reader says, as far as one key at a time goes."""

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import opcheck
from opcheck.checks import limits_by_check
from opcheck.declared import json_schema, write_schema
from tests.declared.examples import HEAD, LIMITS, OP, WHOLE
from tests.declared.test_malformed import MALFORMED

SHIPPED = Path(opcheck.__file__).parent / "schemas" / "registry.schema.json"
VALIDATOR = Draft202012Validator(json_schema(LIMITS), format_checker=Draft202012Validator.FORMAT_CHECKER)

# What takes two keys, the names of the checks, or the difference between a string and a date to see; and numbers that
# JSON lacks or that only 64-bit readers refuse.
BEYOND = {
    "dtype promised and refused", "dtype refused twice", "leading dims last", "unknown dimension",
    "unknown reduced dimension", "leading dims not there", "unknown dimension of a production shape",
    "only leading dims", "smallest above largest", "multiple above largest", "size not a multiple",
    "production shapes outside the contract",
    "production shape not one of the sizes", "size a float", "size beyond 64 bits", "limit nan", "limit infinite",
    "limit beyond 64 bits",
    "looser than opcheck", "looser than the defaults", "looser than the defaults of a dtype",
    "dtype looser than the op", "dtype of the defaults looser", "lower is looser", "date in quotes",
    "waiver of an unknown check", "waiver of a glob of nothing",
    "syntax", "syntax at the end", "op without quotes", "table twice", "nested too deep", "integer of 5,000 digits",
}  # fmt: skip


def as_json(text):
    return json.loads(json.dumps(tomllib.loads(text), default=lambda day: day.isoformat()))


def test_is_a_json_schema():
    Draft202012Validator.check_schema(json_schema(LIMITS))
    Draft202012Validator.check_schema(json_schema(limits_by_check()))


@pytest.mark.parametrize("text", [HEAD, OP, WHOLE], ids=["head", "op", "whole"])
def test_accepts_right_files(text):
    assert [error.message for error in VALIDATOR.iter_errors(as_json(text))] == []


@pytest.mark.parametrize("name", [name for name in MALFORMED if name not in BEYOND])
def test_refuses_what_the_reader_refuses(name):
    assert not VALIDATOR.is_valid(as_json(MALFORMED[name][0]))


@pytest.mark.parametrize("name", sorted(BEYOND))
def test_is_known_to_stop_at(name):
    """A file that is beyond the schema is either no TOML or accepted; else it belongs to the list above."""
    try:
        table = as_json(MALFORMED[name][0])
    except (ValueError, RecursionError):
        return
    assert VALIDATOR.is_valid(table)


def test_describes_every_key():
    schema = json_schema(LIMITS)
    (op,) = [schema["properties"]["op"]["additionalProperties"]]
    undescribed = [key for key, shape in op["properties"].items() if not shape.get("description")]
    assert undescribed == []
    assert op["properties"]["numerics"]["properties"]["fudge_factor"]["description"] == (
        "Times the reference's error. Default 2 narrow, 4 wide."
    )


def test_the_shipped_file_is_up_to_date(tmp_path):
    write_schema(limits_by_check(), tmp_path / "new.json")
    assert SHIPPED.read_text(encoding="utf-8") == (tmp_path / "new.json").read_text(encoding="utf-8"), (
        "a check, a limit or a key has changed: run "
        "opcheck.declared.write_schema(opcheck.checks.limits_by_check(), Path('opcheck/schemas/registry.schema.json'))"
    )
