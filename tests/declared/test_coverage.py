"""The minimum of what must be reached of kernels: `[defaults.coverage]` and `[op."ns::name".coverage]`."""

import jsonschema
import pytest

from opcheck.core.kernel_coverage import COVERAGE, CoverageLimits
from opcheck.core.policy import limits_for
from opcheck.declared import json_schema
from opcheck.errors import PolicyError
from tests.declared.examples import HEAD, LIMITS, OP, policy

DEFAULTS = "[defaults.coverage]\n"
OWN = '[op."ops::f".coverage]\n'
F, P = "registry.toml: defaults.coverage", 'registry.toml: op."ops::f".coverage'
SHARE = "it should be a number of 0 or more, at most 1"


def limits(tmp_path, text):
    return limits_for(CoverageLimits, COVERAGE, policy(tmp_path, text), "ops::f", "")


@pytest.mark.parametrize(("text", "lines", "masks"), [
    (OP, 0.0, 0.0),
    (f"{OP}{DEFAULTS}lines = 0.9\nmasks = 0.8\n", 0.9, 0.8),
    (f"{OP}{OWN}lines = 1\n", 1.0, 0.0),
    (f"{OP}{OWN}lines = 0.95\n{DEFAULTS}lines = 0.9\nmasks = 0.8\n", 0.95, 0.8),
    (f"{OP}{OWN}masks = 0\nreason = 'one size'\n{DEFAULTS}lines = 0.9\nmasks = 0.8\n", 0.9, 0.0),
])  # fmt: skip
def test_the_op_s_own_minimum_stands_above_the_defaults(tmp_path, text, lines, masks):
    assert limits(tmp_path, text) == CoverageLimits(lines=lines, masks=masks)


@pytest.mark.parametrize(("text", "sentence"), [
    (f"{HEAD}{DEFAULTS}lines = 90\n", f"{F}.lines is 90; {SHARE}"),
    (f"{HEAD}{DEFAULTS}masks = -0.1\n", f"{F}.masks is -0.1; {SHARE}"),
    (f"{HEAD}{DEFAULTS}line = 0.9\n", f"{F}.line is not a limit of coverage; it has lines, masks; did you mean lines?"),
    (f"{HEAD}{DEFAULTS}[defaults.coverage.float32]\n", f"{F}.float32 is not a limit of coverage; it has lines, masks"),
    (f"{OP}{OWN}lines = true\n", f"{P}.lines is true; {SHARE}"),
    (
        f"{OP}{OWN}lines = 0.5\n{DEFAULTS}lines = 0.9\n",
        f"{P}.lines is 0.5, looser than the 0.9 of defaults.coverage; give the reason beside it",
    ),
    (
        f'{OP}[[waiver]]\nop = "ops::f"\ncheck = "coverage"\nreason = "r"\nuntil = 2027-03-31\n',
        'registry.toml: waiver[0].check is "coverage"; it should be one of numerics, determinism or a glob that '
        "matches one",
    ),
])  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, text, sentence):
    with pytest.raises(PolicyError) as caught:
        policy(tmp_path, text)
    assert caught.value.problems == (sentence,)


def test_editors_know_it():
    validator = jsonschema.Draft202012Validator(json_schema(LIMITS))
    table = {"schema": 1, "registry": {"modules": ["ops"]}, "defaults": {"coverage": {"lines": 0.9}}}
    assert validator.is_valid(table)
    table["defaults"]["coverage"]["lines"] = 1.5
    assert not validator.is_valid(table)
