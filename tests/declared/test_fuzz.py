"""Nothing but `PolicyError` ever comes out of a wrong document."""

import copy
import datetime
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opcheck.declared import load, policy_of
from opcheck.errors import PolicyError
from tests.declared.examples import LIMITS, WHOLE

PATH = Path("registry.toml")

scalars = (
    st.none().map(lambda _: "x")
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["float32", "...", "rows", "propagate", "five-stage", "numerics", "PASS", "cpu", "a::b"])
    | st.dates()
    | st.datetimes()
    | st.times()
)
keys = st.text(max_size=6) | st.sampled_from(
    ["schema", "registry", "modules", "op", "ops::f", "dims", "dtypes", "kind", "numerics", "float32", "rows", "reason"]
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=20
)


def places(table, path=()):
    """Yield the path of every value in a document."""
    items = table.items() if isinstance(table, dict) else enumerate(table)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


WHOLE_TABLE = tomllib.loads(WHOLE)
PLACES = sorted(places(WHOLE_TABLE), key=repr)


@settings(max_examples=300, deadline=None)
@given(table=st.dictionaries(keys, values, max_size=5))
def test_any_document(table):
    with suppress(PolicyError):
        policy_of({"schema": 1, **table}, LIMITS, PATH)


@settings(max_examples=500, deadline=None)
@given(place=st.sampled_from(PLACES), value=values)
def test_a_right_document_with_one_value_replaced(place, value):
    table = copy.deepcopy(WHOLE_TABLE)
    inner = table
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with suppress(PolicyError):
        policy_of(table, LIMITS, PATH)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_no_value_of_a_right_document_may_be_a_time(place):
    """TOML's local time is nowhere right, so every place that is read at all must refuse it."""
    table = copy.deepcopy(WHOLE_TABLE)
    inner = table
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = datetime.time(7, 30)
    with pytest.raises(PolicyError, match="is 07:30:00; it should be "):
        policy_of(table, LIMITS, PATH)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(WHOLE)), junk=st.text(max_size=5) | st.sampled_from(["=", "[", "]]", '"', "'''", "\x00"]))
def test_any_text(tmp_path, cut, junk):
    path = tmp_path / "registry.toml"
    path.write_text(WHOLE[:cut] + junk + WHOLE[cut:], encoding="utf-8", errors="replace")
    with suppress(PolicyError):
        load(path, LIMITS)
