"""Which families an op is audited with: by its kind, its contract, the level, and the kinds of input that it draws."""

import itertools

import pytest

from opcheck.core import factors
from opcheck.core.facts import Facts, Input
from opcheck.core.families import FAMILIES, families_for, family
from opcheck.core.policy import KINDS, LEVELS, Contract

ALL_DRAWS = ("float", "integer", "boolean", "offsets")


def names(kind, **settings):
    return [item.name for item in families_for(kind, **{"finite_only": False, **settings})]


def test_the_quick_level_has_six_families_of_floats():
    assert names("normalization", level="quick") == [
        "normal", "large_mean", "extreme_logits", "zeros", "tail", "one_nan",
    ]  # fmt: skip
    assert "tail" not in names("elementwise", level="quick"), "nothing is reduced along a row"


@pytest.mark.parametrize("kind", KINDS)
def test_a_higher_level_goes_on_where_a_lower_one_ends(kind):
    quick, standard, full = (names(kind, level=level, draws=ALL_DRAWS) for level in LEVELS)
    assert standard[: len(quick)] == quick
    assert full[: len(standard)] == standard
    assert standard[0] == "normal"


def test_every_family_is_planned_for_some_kind_and_no_kind_goes_without():
    planned = {name for kind in KINDS for name in names(kind, draws=ALL_DRAWS)}
    assert planned == {item.name for item in FAMILIES}
    assert all(len(names(kind)) > 8 for kind in KINDS)


@pytest.mark.parametrize(("kind", "draws"), [*itertools.product(KINDS, [ALL_DRAWS, ("float",)])])
def test_an_op_without_nan_and_inf_in_its_contract_gets_none(kind, draws):
    dropped = set(names(kind, draws=draws)) - set(names(kind, draws=draws, finite_only=True))
    assert dropped == set(names(kind, draws=draws)) & {"masked", "one_nan", "one_inf", "one_negative_inf"}


def test_what_is_not_drawn_is_not_planned():
    floats = set(names("gather"))
    assert floats.isdisjoint({"lowest", "highest", "ascending", "unit_parts"})
    assert set(names("gather", draws=("float", "integer"))) - floats == {
        "lowest", "highest", "one_lowest", "one_highest", "ascending", "descending", "equal", "alternating",
    }  # fmt: skip
    assert set(names("gather", draws=("float", "boolean"))) - floats == {
        "lowest", "highest", "one_lowest", "one_highest", "alternating",
    }  # fmt: skip
    assert set(names("gather", draws=("float", "offsets"))) - floats == {
        "lowest", "highest", "equal", "alternating", "unit_parts",
    }  # fmt: skip
    assert names("gather", draws=("integer",))[0] == "normal"
    assert "zeros" not in names("gather", draws=("integer",))


def test_the_facts_of_an_op_say_what_it_draws():
    contract = Contract(name="ops::look_up", kind="gather", dtypes=("float32",), dims=("entries", "rows", "cols"))
    table, index = Input(kind="float", rank=2, floating=True), Input(kind="integer", rank=1)
    unknown = factors.families(contract, Facts(), "standard")
    floats = factors.families(contract, Facts(inputs={"table": table}), "standard")
    both = factors.families(contract, Facts(inputs={"table": table, "index": index}), "standard")
    assert unknown == floats
    assert set(both) - set(floats) >= {"lowest", "highest"}


def test_a_contract_may_ask_for_a_family_beside_those_of_its_kind():
    def planned(values, level="standard", **promises):
        contract = Contract(
            name="ops::norm",
            kind="normalization",
            dtypes=("float32",),
            dims=("rows", "cols"),
            values=values,
            **promises,
        )
        return factors.families(contract, Facts(), level)

    assert set(planned(("near_overflow",))) - set(planned(())) == {"near_overflow"}
    assert planned(("zeros",)) == planned(()), "its kind has that one"
    assert planned(("near_overflow",), "quick") == planned((), "quick"), "the level decides as for any other"
    assert planned(("lowest",)) == planned(()), "it draws no integers"


def test_family_by_name():
    assert all(family(item.name) is item for item in FAMILIES)
    assert family("no such family") is None


def test_a_saturated_softmax_is_not_combined_with_a_constant_upstream_gradient():
    def possible(kind, values, layout):
        contract = Contract(name="ops::some", kind=kind, dtypes=("float32",), dims=("rows", "cols"))
        return factors.possible(contract, Facts(), factors.Point(dtype="float32", values=values, layout=layout))

    assert not possible("normalization", "extreme_logits", "x=padded+grad:out=expanded")
    assert not possible("attention", "extreme_logits", "grad:out=zero")
    assert possible("normalization", "extreme_logits", "x=expanded+grad:out=padded")
    assert possible("normalization", "normal", "grad:out=expanded")
    assert possible("elementwise", "extreme_logits", "grad:out=expanded")
