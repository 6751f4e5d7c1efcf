"""Right files give the policy that they state, field by field."""

import datetime
from dataclasses import dataclass

import pytest

from opcheck.core.policy import (
    ByWidth,
    Contract,
    Existing,
    GatePolicy,
    Override,
    Policy,
    Unsupported,
    Waiver,
    limit,
    limits_for,
)
from opcheck.core.spec import OpSpec
from opcheck.core.verdict import Verdict
from opcheck.declared import draft, json_schema, load
from opcheck.errors import PolicyError
from tests.declared.examples import HEAD, OP, WHOLE, NumericsLimits, policy

WHOLE_POLICY = Policy(
    modules=("ops", "ops.more"),
    defaults=(
        Override(
            check="numerics",
            dtype="",
            values={
                "fudge_factor": ByWidth(narrow=2.0, wide=4.0),
                "project_atol": 0.0,
                "max_reference_relative_error": 0.1,
            },
        ),
        Override(
            check="numerics",
            dtype="float16",
            values={"project_atol": 1e-7},
            reason="subnormals are flushed",
            source="issue 12",
        ),
    ),
    gate=GatePolicy(accept=frozenset({Verdict.PASS, Verdict.INCONCLUSIVE}), backends=("cpu", "cuda:sm_90")),
    ops={
        "ops::rms_norm": Contract(
            name="ops::rms_norm",
            kind="normalization",
            dtypes=("float32", "float16", "bfloat16"),
            dims=("...", "rows", "cols"),
            formula="x * rsqrt(mean(x^2) + eps) * weight",
            mixed=({"x": "bfloat16", "weight": "float32"},),
            accumulator="float32",
            intermediates=("float32",),
            reduces=("cols",),
            smallest={"rows": 1, "cols": 2},
            largest={"cols": 65536},
            sizes={"rows": (64, 4096)},
            multiple={"cols": 2},
            empty=("rows", "..."),
            tiles={"cols": (1024,)},
            production=({"rows": 4096, "cols": 4096},),
            variants=({"eps": 1e-5, "approximate": "tanh", "causal": True, "window": -1},),
            values=("near_overflow", "saturating"),
            contiguous={"x": "rows are read as one block"},
            extent={"x": "a window of the rows is read"},
            no_grad={"cos": "a table"},
            nonfinite_undefined="masked by the caller",
            deterministic_forward=True,
            deterministic_backward=False,
            random=True,
            overflow="saturate",
            unsupported=(Unsupported(dtype="float64", reason="statistics are float32"),),
            existing={"float16": Existing(atol=1e-2, rtol=1e-3, reason="the old test")},
            overrides=(
                Override(check="numerics", dtype="", values={"project_atol": 1e-6}, reason="eps"),
                Override(
                    check="numerics",
                    dtype="float32",
                    values={"fudge_factor": ByWidth(narrow=6.0, wide=6.0)},
                    reason="rsqrt",
                    source="H200",
                ),
                Override(check="determinism", dtype="", values={"runs": 20}),
            ),
        )
    },
    waivers=(
        Waiver(
            op="ops::rms_*",
            check="determinism",
            where={"dtype": "float16", "backend": "cuda"},
            reason="atomics",
            until=datetime.date(2027, 3, 31),
        ),
    ),
)


@pytest.mark.parametrize("field", ["modules", "defaults", "gate", "ops", "waivers"])
def test_reads_every_key(tmp_path, field):
    assert getattr(policy(tmp_path, WHOLE), field) == getattr(WHOLE_POLICY, field)


def test_remembers_its_path(tmp_path):
    assert policy(tmp_path, WHOLE).path == str(tmp_path / "registry.toml")


def test_keeps_variants_apart_that_python_calls_equal(tmp_path):
    read = policy(tmp_path, f"{OP}variants = [{{ e = 1 }}, {{ e = 1.0 }}, {{ e = true }}]\n")
    assert [type(variant["e"]) for variant in read.ops["ops::f"].variants] == [int, float, bool]


def test_needs_only_modules(tmp_path):
    read = policy(tmp_path, HEAD)
    assert (read.modules, read.defaults, read.gate, read.ops, read.waivers) == (("ops",), (), GatePolicy(), {}, ())


def test_fills_in_a_contract_of_three_keys(tmp_path):
    expected = Contract(name="ops::f", kind="elementwise", dtypes=("float32", "bfloat16"), dims=("rows", "cols"))
    assert policy(tmp_path, OP).ops == {"ops::f": expected}


def test_one_size_alone_may_be_legal(tmp_path):
    sizes = "smallest = { rows = 8 }\nlargest = { rows = 8 }\nmultiple = { rows = 8 }\nproduction = [{ rows = 8 }]\n"
    assert policy(tmp_path, OP + sizes).ops["ops::f"].production == ({"rows": 8},)


@pytest.mark.parametrize(
    ("text", "forward", "backward"),
    [
        ("false", False, False),
        ("true", True, True),
        ("{ forward = false }", False, True),
        ("{ backward = false }", True, False),
    ],
)
def test_reads_both_forms_of_deterministic(tmp_path, text, forward, backward):
    contract = policy(tmp_path, f"{OP}deterministic = {text}\n").ops["ops::f"]
    assert (contract.deterministic_forward, contract.deterministic_backward) == (forward, backward)


def test_propagating_nonfinite_values_need_no_reason(tmp_path):
    assert policy(tmp_path, f'{OP}nonfinite = "propagate"\n').ops["ops::f"].nonfinite_undefined == ""


def test_knows_the_five_stage_tolerances(tmp_path):
    existing = policy(tmp_path, f'{OP}[op."ops::f".numerics]\nexisting = "five-stage"\n').ops["ops::f"].existing
    pairs = {dtype: (tolerance.atol, tolerance.rtol) for dtype, tolerance in existing.items()}
    assert pairs == {"float32": (1e-4, 1e-4), "float16": (1e-2, 1e-2), "bfloat16": (2e-2, 2e-2)}


@pytest.mark.parametrize(
    "tables",
    [
        '[op."ops::f".numerics]\nfudge_factor = 100\nreason = "measured"\n',
        '[op."ops::f".numerics]\nfudge_factor = { narrow = 1.5, wide = 4 }\n',
        '[op."ops::f".determinism]\nruns = 11\n',
        '[op."ops::f".numerics]\nmax_reference_relative_error = 0.9\n',
        "[defaults.numerics]\nfudge_factor = 100\n",
        '[defaults.numerics]\nproject_atol = 1\n[op."ops::f".numerics]\nproject_atol = 0.5\n',
        # Only the dtypes of the op count: 3 is looser for float16, which it does not have, and tighter for float32.
        '[op."ops::f".numerics.float32]\nfudge_factor = 3\n',
    ],
    ids=["reason", "tighter", "more runs", "neither way", "defaults", "tighter than the defaults", "of one dtype"],
)
def test_asks_no_reason_for(tmp_path, tables):
    policy(tmp_path, f"{OP}{tables}")


def test_an_op_of_wide_dtypes_may_go_below_the_wide_limit(tmp_path):
    text = OP.replace(', "bfloat16"', "") + '[op."ops::f".numerics]\nfudge_factor = 3\n'
    assert policy(tmp_path, text).ops["ops::f"].overrides[0].values == {"fudge_factor": ByWidth(narrow=3.0, wide=3.0)}


def test_a_read_file_gives_the_limits_of_a_dtype(tmp_path):
    read = policy(tmp_path, WHOLE)
    of = {
        dtype: limits_for(NumericsLimits, "numerics", read, "ops::rms_norm", dtype) for dtype in ("float32", "float16")
    }
    assert of["float32"].fudge_factor.of("float32") == 6.0
    assert of["float16"].fudge_factor.of("float16") == 2.0
    assert of["float16"].project_atol == 1e-6


def test_accepts_a_byte_order_mark_and_carriage_returns(tmp_path):
    text = "\ufeff" + OP.replace("\n", "\r\n")
    assert list(policy(tmp_path, text).ops) == ["ops::f"]


def test_a_draft_is_a_contract_that_loads(tmp_path):
    def nothing(*args):
        return args

    spec = OpSpec(name="ops::new", target=nothing, reference=nothing, golden=nothing, samples=nothing)
    text = draft(spec)
    contract = policy(tmp_path, HEAD + text).ops["ops::new"]
    assert (contract.kind, contract.dims) == ("elementwise", ("n",))
    assert contract.dtypes == ("float32", "float16", "bfloat16")
    assert all("  # " in line for line in text.splitlines()[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class UlpLimits:
    max_ulp: float = limit(2.0, "Units in the last place.", zero=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OddLimits:
    mode: str = limit("fast", "A word.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClashingLimits:
    float32: float = limit(1.0, "A limit with the name of a dtype.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLimits:
    names: tuple[str, ...] = limit(("a",), "Some names.", loose="neither", choices=("a", "b"))
    may: bool = limit(False, "Whether it may.")


@pytest.mark.parametrize(("line", "values"), [
    ('names = ["b", "a"]', {"names": ("b", "a")}),
    ("names = []", {"names": ()}),
    ('may = true\nreason = "it must"', {"may": True}),
])  # fmt: skip
def test_a_limit_may_be_a_list_of_names_or_a_truth(tmp_path, line, values):
    path = tmp_path / "registry.toml"
    path.write_text(f"{HEAD}[defaults.words]\n{line}\n")
    assert load(path, {"words": WordLimits}).defaults[0].values == values


@pytest.mark.parametrize(("line", "sentence"), [
    ('names = ["c"]', r"words\.names\[0\] is \"c\"; it should be one of a, b"),
    ('names = "a"', r"words\.names is \"a\"; it should be a list, each one of a, b"),
    ("may = 1", r"words\.may is 1; it should be true or false"),
    ("may = true", r"words\.may is true, looser than the false that opcheck starts from; give the reason"),
])  # fmt: skip
def test_a_wrong_name_or_truth_gets_one_sentence(tmp_path, line, sentence):
    path = tmp_path / "registry.toml"
    path.write_text(
        f'{HEAD}[op."ops::f"]\nkind = "elementwise"\ndtypes = ["float32"]\ndims = ["n"]\n[op."ops::f".words]\n{line}\n'
    )
    with pytest.raises(PolicyError, match=sentence):
        load(path, {"words": WordLimits})


def test_zero_is_right_where_the_limit_says_so(tmp_path):
    path = tmp_path / "registry.toml"
    path.write_text(f"{HEAD}[defaults.ulp]\nmax_ulp = 0\n")
    assert load(path, {"ulp": UlpLimits}).defaults[0].values == {"max_ulp": 0.0}


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (
            {"odd": OddLimits},
            r"odd\.mode is of type <class 'str'>; it should be int, float, bool, tuple\[str, \.\.\.\] or ByWidth",
        ),
        ({"odd": ClashingLimits}, r"limit odd\.float32 needs a default and a name that no other key has"),
        ({"kind": NumericsLimits}, "the checks kind are named as keys of a contract are"),
    ],
)
def test_refuses_limits_that_no_table_can_hold(limits, sentence):
    with pytest.raises(TypeError, match=sentence):
        json_schema(limits)
