"""Plans: legal, complete, without repetition, and the same every time."""

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from opcheck.core.case import Case
from opcheck.core.cases import coverage, plan_cases
from opcheck.core.cost import BUDGET
from opcheck.core.facts import Facts
from opcheck.core.families import families_for
from opcheck.core.outside import outside as why_outside
from opcheck.core.policy import KINDS, LEVELS, Contract
from opcheck.core.shapes import INTERPRETED_ELEMENTS
from opcheck.core.variants import variant_text

RMS = Contract(
    name="ops::rms_norm", kind="normalization", dtypes=("float32", "bfloat16"), dims=("...", "rows", "cols"),
    reduces=("cols",), tiles={"cols": (128, 1024)}, variants=({"eps": 1e-5},),
    mixed=({"x": "bfloat16", "weight": "float32"},), production=({"rows": 4096, "cols": 4096},),
)  # fmt: skip
PARTS = ("k", "m", "n")


@st.composite
def contracts(draw):
    """Draw contracts in which every dimension has a legal size."""
    dims = draw(st.permutations(PARTS))[: draw(st.integers(1, 3))]
    smallest, largest, sizes, multiple, tiles = {}, {}, {}, {}, {}
    for name in dims:
        if draw(st.booleans()):
            sizes[name] = tuple(draw(st.lists(st.integers(1, 300), min_size=1, max_size=3, unique=True)))
            continue
        step = draw(st.sampled_from([1, 1, 2, 16]))
        low = draw(st.integers(1, 10)) * step
        multiple |= {name: step} if step > 1 else {}
        smallest |= {name: low} if draw(st.booleans()) else {}
        largest |= {name: low + draw(st.integers(0, 20)) * step} if draw(st.booleans()) else {}
        tiles |= {name: tuple(draw(st.lists(st.sampled_from([1, 16, 64, 128]), max_size=2)))}
    return Contract(
        name="ops::some", kind=draw(st.sampled_from(KINDS)), dtypes=("float32", "float16"), dims=tuple(dims),
        reduces=tuple(dims[:1]), smallest=smallest, largest=largest, sizes=sizes, multiple=multiple, tiles=tiles,
        nonfinite_undefined=draw(st.sampled_from(["", "not promised"])),
    )  # fmt: skip


def ids(plan):
    return [item.case.id for item in plan.cases]


def legal(contract, name, size):
    if name in contract.sizes:
        return size in contract.sizes[name]
    low, high = contract.smallest.get(name, 1), contract.largest.get(name, math.inf)
    return low <= size <= high and size % contract.multiple.get(name, 1) == 0


@settings(max_examples=60, deadline=None)
@given(contracts(), st.sampled_from(LEVELS), st.sampled_from(["cpu", "cuda"]), st.integers(0, 9))
def test_every_case_is_legal_and_stands_once(contract, level, backend, seed):
    plan = plan_cases(contract, level=level, backend=backend, seed=seed)
    assert len(set(ids(plan))) == len(plan.cases) > 0
    assert plan == plan_cases(contract, level=level, backend=backend, seed=seed)
    for item in plan.cases:
        case = item.case
        assert Case.parse(case.id) == case
        assert (case.op, case.seed, case.backend) == (contract.name, seed, backend)
        assert tuple(case.dims) == contract.dims
        refused = why_outside(contract, case)
        assert refused or all(legal(contract, name, size) for name, size in case.dims.items()), case.id
    assert {item.case.dtype for item in plan.cases} == set(contract.dtypes)
    chosen = [item.case.dtype for item in plan.cases if item.representative]
    # One case of each dtype carries the costly checks, at the quick level one of the first dtype.
    assert sorted(chosen) == sorted(contract.dtypes[:1] if level == "quick" else contract.dtypes)
    nonfinite = {"masked", "one_inf", "one_nan"} & {item.case.values for item in plan.cases}
    assert not (contract.nonfinite_undefined and nonfinite)
    assert bool(contract.nonfinite_undefined) == any("not promised" in text for text in plan.not_covered)


@settings(max_examples=30, deadline=None)
@given(contracts(), st.sampled_from(["cpu", "cuda"]))
def test_a_higher_level_leaves_nothing_out(contract, backend):
    quick, standard, full = (set(ids(plan_cases(contract, level=level, backend=backend))) for level in LEVELS)
    assert quick <= standard <= full


def sizes_of(plan, name):
    return {item.case.dims[name] for item in plan.cases}


def test_tile_edges_are_planned_from_both_sides():
    assert sizes_of(plan_cases(RMS, level="standard", backend="cuda"), "cols") >= {1, 127, 128, 129, 1023, 1024, 1025}
    assert sizes_of(plan_cases(RMS, level="quick", backend="cuda"), "cols") >= {1, 129, 1025}
    assert 1023 not in sizes_of(plan_cases(replace(RMS, tiles={}), level="standard", backend="cuda"), "cols")


def test_the_plan_of_a_normalization():
    plan = plan_cases(RMS, level="standard", backend="cpu")
    cases = [item.case for item in plan.cases]
    wanted = {item.name for item in families_for("normalization", finite_only=False, level="standard")}
    assert wanted >= {"normal", "large_mean", "extreme_logits", "zeros", "masked", "one_inf", "one_nan"}
    assert all({case.values for case in cases if case.dtype == dtype} == wanted for dtype in RMS.dtypes)
    assert {case.variant for case in cases} == {"", variant_text({"eps": 1e-5})}
    assert {case.dtype for case in cases} == {"float32", "bfloat16", "x=bfloat16,weight=float32"}
    assert {case.dims.leading for case in cases} >= {(), (2,), (2, 1), (2, 1, 3)}
    assert [item.case.id for item in plan.cases if item.representative] == [
        f"ops::rms_norm[{dtype};rows=5,cols=129;normal;;;;0]@cpu" for dtype in RMS.dtypes
    ]


def test_an_op_that_may_drop_its_inputs_is_given_none_that_are_not_finite():
    plan = plan_cases(replace(RMS, random=True), level="standard", backend="cuda")
    wanted = {item.name for item in families_for("normalization", finite_only=True, level="standard")}
    assert {item.case.values for item in plan.cases} == wanted
    assert plan.not_covered == ("NaN and Inf inputs: the op is declared random, and may drop them",)


def test_a_production_shape_runs_on_a_gpu_and_is_named_where_it_does_not():
    on_gpu = plan_cases(RMS, level="standard", backend="cuda")
    assert any(item.case.dims == {"rows": 4096, "cols": 4096} for item in on_gpu.cases)
    assert on_gpu.not_covered == ()
    interpreted = plan_cases(RMS, level="standard", backend="cpu")
    assert max(math.prod(item.case.dims.values()) for item in interpreted.cases) <= INTERPRETED_ELEMENTS
    assert interpreted.not_covered == tuple(
        f"shape {shape}: too large for the interpreter; audit it on a GPU"
        for shape in ("rows=65537, cols=1", "rows=4096, cols=4096")
    )


def test_a_refused_dtype_is_named_wherever_it_would_have_stood():
    plan = plan_cases(RMS, level="quick", backend="cpu", refused={"bfloat16": "its self-test fails"})
    assert {item.case.dtype for item in plan.cases} == {"float32"}
    assert plan.not_covered == (
        "bfloat16: its self-test fails",
        "mixed x=bfloat16,weight=float32: its self-test fails",
    )
    assert plan_cases(RMS, level="quick", backend="cpu", refused={"float64": "x"}).not_covered == ()


def test_a_plan_with_every_dtype_refused_is_empty_and_says_so():
    plan = plan_cases(RMS, level="quick", backend="cpu", refused={"bfloat16": "a", "float32": "b"})
    assert plan.cases == ()
    assert len(plan.not_covered) == 4


def test_a_plan_costs_what_its_level_may():
    for level in LEVELS:
        required = plan_cases(RMS, level=level, backend="cpu", budget=0)
        whole = plan_cases(RMS, level=level, backend="cpu")
        assert set(ids(required)) <= set(ids(whole))
        assert whole.cost <= max(BUDGET[level], required.cost)
    assert plan_cases(RMS, level="standard", backend="cpu", budget=12).cost <= 12


def test_pairs_that_ran_are_counted_and_no_others():
    plan = plan_cases(RMS, level="full", backend="cpu")
    everything = coverage(plan, (item.case for item in plan.cases))
    assert everything.whole.covered == everything.whole.possible
    one = coverage(plan, [plan.cases[0].case])
    assert one.whole.covered == 14, "a pair for each two of six factors, but for layout and grads: nothing varies there"
    assert all(share.covered <= 1 for share in one.pairs.values())
    assert coverage(plan, []).whole.covered == 0


def test_families_that_hide_faults_do_not_stand_for_other_pairs():
    plan = plan_cases(RMS, level="full", backend="cpu")
    hidden = [item.case for item in plan.cases if item.case.values in ("zeros", "one_nan")]
    assert {name for name, share in coverage(plan, hidden).pairs.items() if share.covered} <= {
        "dtype x values", "shape x values", "values x layout", "values x variant", "values x grads",
    }  # fmt: skip


def test_each_configuration_of_an_autotuned_kernel_runs_alone():
    facts = Facts(configs={"ops.kernel": 3})

    def configs(level, backend):
        found = plan_cases(RMS, level=level, backend=backend, facts=facts)
        return sorted({item.case.variant for item in found.cases if "%" in item.case.variant})

    assert configs("quick", "cpu") == []
    assert configs("standard", "cpu") == ["%config=1", "%config=2"]
    assert configs("standard", "cuda") == ["%config=1", "%config=2"]
    assert (
        "2 of 3 configurations of ops.kernel, each alone"
        in plan_cases(RMS, level="quick", backend="cpu", facts=facts).not_covered
    )
