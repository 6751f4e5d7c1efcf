"""Which programs of a grid are chosen, and which shapes have a sample of them."""

import math
from dataclasses import replace

import pytest

from opcheck.core.case import Dims
from opcheck.core.cases import plan_cases
from opcheck.core.facts import Facts, Input, Launch, Output
from opcheck.core.policy import Contract
from opcheck.core.sampling import CHOSEN, chosen_programs
from opcheck.core.variants import config_of, programs_of, variant_values
from opcheck.errors import BadCase

CONTRACT = Contract(
    name="ops::norm", kind="normalization", dtypes=("float32", "bfloat16"), dims=("rows", "cols"), reduces=("cols",),
    production=(Dims(rows=4096, cols=4096), Dims(rows=65536, cols=65536)),
)  # fmt: skip
FACTS = Facts(
    inputs={"x": Input(kind="float", rank=2, dims=("rows", "cols"), floating=True)}, outputs={"out": Output(rank=2)},
    launches=(Launch(kernel="k", place="k.py:1", dims={"rows": 5, "cols": 129}, grid=(5, 1, 1)),),
)  # fmt: skip


@pytest.mark.parametrize("grid", [(65537, 1, 1), (1, 70000, 1), (100, 200, 1), (30, 40, 50), (2, 2, 4097)])
def test_the_corners_are_among_the_programs(grid):
    found = chosen_programs(grid, CHOSEN, 0)
    assert len(found) == len(set(found)) == CHOSEN
    assert found == sorted(found)
    ends = [(0, size - 1) for size in grid]
    assert {(x, y, z) for x in ends[0] for y in ends[1] for z in ends[2]} <= set(found)
    assert all(0 <= place < size for program in found for place, size in zip(program, grid, strict=True))


def test_a_small_grid_has_all_and_the_first_and_last_come_first():
    assert chosen_programs((2, 3, 1), CHOSEN, 0) == [(x, y, 0) for x in range(2) for y in range(3)]
    assert chosen_programs((0, 3, 1), CHOSEN, 0) == []
    assert chosen_programs((9, 9, 9), 2, 0) == [(0, 0, 0), (8, 8, 8)]
    assert chosen_programs((9, 1, 9), 2, 0) == [(0, 0, 0), (8, 0, 8)]


def test_the_seed_decides_the_others():
    grid = (1000, 1, 1)
    assert chosen_programs(grid, CHOSEN, 3) == chosen_programs(grid, CHOSEN, 3) != chosen_programs(grid, CHOSEN, 4)


def sampled(level, contract=CONTRACT, facts=FACTS, backend="cpu"):
    plan = plan_cases(contract, level=level, backend=backend, facts=facts)
    return [item.case for item in plan.cases if programs_of(item.case.variant) is not None], plan


def test_large_shapes_have_a_case_in_one_dtype_as_far_as_time_and_memory_allow():
    rows, production = Dims(rows=65537, cols=1), Dims(rows=4096, cols=4096)
    assert [(case.dims, case.dtype, case.variant) for case in sampled("standard")[0]] == [
        (rows, "float32", "%programs=16")
    ]
    cases, plan = sampled("full")
    assert [case.dims for case in cases] == [rows, production]
    assert plan.not_covered[:3] == (
        "shape rows=65537, cols=1: too large for the interpreter but for a sample of its programs in one dtype; "
        "audit it on a GPU",
        "shape rows=4096, cols=4096: too large for the interpreter but for a sample of its programs in one dtype; "
        "audit it on a GPU",
        "shape rows=65536, cols=65536: too large for the interpreter; audit it on a GPU",
    )
    assert sampled("quick")[0] == []


def test_a_level_keeps_the_samples_of_the_one_below():
    assert {case.id for case in sampled("standard")[0]} <= {case.id for case in sampled("full")[0]}


@pytest.mark.parametrize("changed", [
    {"backend": "cuda"}, {"contract": replace(CONTRACT, random=True)},
    {"contract": replace(CONTRACT, kind="contraction")}, {"facts": replace(FACTS, launches=())},
])  # fmt: skip
def test_what_draws_numbers_multiplies_matrices_or_launches_nothing_has_none(changed):
    assert sampled("full", **changed)[0] == []


def test_other_cases_are_as_many_as_without():
    cases, plan = sampled("standard")
    whole = [item.case for item in plan.cases if item.case not in cases]
    assert max(math.prod(case.dims.values()) for case in whole) <= 1 << 16


def test_the_number_of_programs_is_reserved():
    assert programs_of("eps=1e-05,%programs=16") == 16
    assert variant_values("%programs=16,%config=2") == {}
    assert config_of("%programs=16,%config=2") == 2
    for text in ("%programs=0", "%programs=true", '%programs="all"'):
        with pytest.raises(BadCase, match="an integer of 1 or more"):
            programs_of(text)
