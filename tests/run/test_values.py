"""Every family of values has the property that it claims, in every element type and rank."""

import math
from dataclasses import replace

import pytest
import torch

from opcheck.core.case import Case, Dims
from opcheck.core.families import FAMILIES, FLOAT
from opcheck.core.formats import FORMATS
from opcheck.errors import BadCase
from opcheck.run.inputs import Drawer, seeded, standard_normal
from opcheck.run.roles import upstream
from opcheck.run.values import booleans, fill, integers, offsets

CPU = torch.device("cpu")
SHAPES = ((), (1,), (129,), (5, 129), (3, 1), (1, 9), (2, 3, 17), (2, 1, 4, 33))
EMPTY = ((0,), (0, 5), (5, 0), (2, 0, 3))
FLOATS = tuple(family.name for family in FAMILIES if "float" in family.fills)
DTYPES = tuple(FORMATS)


def drawn(name, shape=(5, 129), dtype="float32", first=True, seed=0):
    """Values as a sample gets them: filled in float32, then rounded to the element type."""
    filled = fill(name, standard_normal(shape, f"{seed}", CPU), dtype, first=first)
    return filled.to(getattr(torch, dtype)).double()


def rows(x):
    return x.reshape(-1, x.shape[-1] if x.dim() else 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FLOATS)
def test_shape_and_finiteness_are_kept_and_nothing_is_changed_in_place(name, dtype):
    family = next(item for item in FAMILIES if item.name == name)
    for shape in (*SHAPES, *EMPTY):
        for first in (True, False):
            normal = standard_normal(shape, "0", CPU)
            before = normal.clone()
            filled = fill(name, normal, dtype, first=first)
            assert filled.shape == shape
            assert filled.dtype is torch.float32
            assert torch.equal(normal, before)
            if family.finite and dtype not in ("float8_e4m3fn", "float8_e5m2"):
                assert drawn(name, shape, dtype, first).isfinite().all()


@pytest.mark.parametrize("name", FLOATS)
def test_a_seed_gives_the_same_values_again_and_another_seed_others(name):
    again = [drawn(name, seed=1), drawn(name, seed=1), drawn(name, seed=2)]
    assert torch.equal(again[0].nan_to_num(9.0), again[1].nan_to_num(9.0))
    if name not in ("zeros", "one_hot"):
        assert not torch.equal(again[0].nan_to_num(9.0), again[2].nan_to_num(9.0))


def test_families_stand_once_and_say_what_they_are_for():
    names = [item.name for item in FAMILIES]
    assert len(set(names)) == len(names)
    assert all(item.bug.endswith(".") and item.kinds and item.fills for item in FAMILIES)
    with pytest.raises(KeyError):
        fill("no such family", torch.ones(3), "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_distributions(dtype):
    fmt = FORMATS[dtype]
    uniform = drawn("uniform", dtype=dtype)
    assert uniform.min() >= 0.0
    assert uniform.max() <= 1.0
    assert 0.45 < uniform.mean() < 0.55
    far = drawn("far_mean", dtype=dtype)
    mean = {"float64": 1000, "float32": 1000, "float16": 256, "bfloat16": 32, "float8_e4m3fn": 2, "float8_e5m2": 1}
    assert abs(far.mean() - mean[dtype]) < 0.2
    assert 0.8 < far.std() < 1.2
    near_overflow = drawn("near_overflow", dtype=dtype).abs()
    largest = fmt.max if fmt.e_max < 127 else FORMATS["float32"].max / 2**14
    assert largest / 8.1 < near_overflow.min()
    assert near_overflow.max() < largest / 1.99
    exact = drawn("small_integers", dtype=dtype)
    assert set(exact.unique().tolist()) == {-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0}
    assert not (exact.signbit() & (exact == 0)).any()
    assert (rows(exact) == rows(exact).amax(-1, keepdim=True)).sum(-1).min() > 1, "some maximum stands alone"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_subnormal_values_are_below_the_smallest_normal_number_and_not_zero(dtype):
    x = drawn("subnormal", dtype=dtype)
    assert x.abs().max() <= 2.0 ** FORMATS[dtype].e_min
    assert (x != 0).double().mean() > 0.9
    assert x.min() < 0 < x.max()


def test_zeros_have_both_signs():
    x = drawn("signed_zeros")
    zero = x == 0
    assert (zero & x.signbit()).sum() == (zero & ~x.signbit()).sum() == x.numel() // 3
    assert not drawn("zeros").any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_sum_and_a_sum_of_products_cancel(dtype):
    x, y = drawn("cancelling", (5, 128), dtype), drawn("cancelling", (5, 128), dtype, first=False, seed=3)
    for terms in (x, x * y):
        assert (terms.abs().sum(-1) / terms.sum(-1).abs()).min() > 50


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e5m2"])
def test_products_of_halfway_values_are_ties(dtype):
    x, y = drawn("halfway", dtype=dtype), drawn("halfway", dtype=dtype, first=False)
    product, precision = x * y, FORMATS[dtype].precision
    exponent = product.abs().log2().floor()
    ulps = product * torch.exp2(precision - 1 - exponent)
    assert ((ulps - ulps.floor()) == 0.5).all()
    assert (x < 0).any()
    assert (x > 0).any()
    if precision >= 8:
        assert product.abs().unique().numel() >= 64


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_half_steps_lie_between_integers_under_a_scale_of_one(dtype):
    x = drawn("half_steps", dtype=dtype)
    assert (x[:, 0] == 127).all()
    assert ((x[:, 1:] - x[:, 1:].floor()) == 0.5).all()
    assert x.abs().max() == 127
    assert (drawn("half_steps", dtype=dtype, first=False) == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_half_steps_fp8_lie_between_its_numbers_under_a_scale_of_one(dtype):
    x = drawn("half_steps_fp8", dtype=dtype)
    grid = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
    grid = grid[grid.isfinite()].unique()
    above = torch.searchsorted(grid, x[:, 1:].contiguous())
    assert (x[:, 0] == 448).all()
    assert torch.equal(x[:, 1:], (grid[above - 1] + grid[above]) / 2)
    assert x.abs().min() < 2.0**-6, "below its normal numbers, too"
    assert x[:, 1:].abs().max() > 100
    assert (drawn("half_steps_fp8", dtype=dtype, first=False) == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rows_of_one_number(dtype):
    assert (drawn("constant_rows", dtype=dtype).std(-1) == 0).all()
    near = drawn("near_constant", dtype=dtype)
    assert (near.std(-1) > 0).all()
    assert (near.mean(-1).abs() / near.std(-1)).min() > 25


@pytest.mark.parametrize(("name", "low"), [("masked", -math.inf), ("masked_finite", -3e4)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_masks_cover_a_row_the_first_half_of_rows_and_a_last_element(name, low, dtype):
    hidden = drawn(name, (5, 129), dtype) <= low
    expected = torch.zeros(5, 129, dtype=torch.bool)
    expected[0], expected[1:4, :65], expected[4, -1] = True, True, True
    assert torch.equal(hidden, expected)
    assert (drawn(name, (7,), dtype) <= low).tolist() == [False] * 6 + [True]
    assert not (drawn(name, (1,), dtype) <= low).any(), "a single element is left alone"


def test_a_finite_mask_is_below_a_start_at_minus_1e9_and_its_square_does_not_overflow():
    row = drawn("masked_finite", (3, 4096))[0]
    assert row.max() < -1e9
    assert row.square().sum() < FORMATS["float32"].max


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_outliers(dtype):
    normal = drawn("normal", dtype=dtype)
    by_row = (drawn("outlier_row", dtype=dtype) / normal).abs()
    by_column = (drawn("outlier_column", dtype=dtype) / normal).abs()
    for ratio, large in ((by_row, by_row.mean(1)), (by_column, by_column.mean(0))):
        assert (large > 990).sum() == 1
        assert (large < 1.01).sum() == large.numel() - 1
        assert ratio.max() < 1010


def test_weight_in_the_tail():
    for name, heavy in (("tail", 1), ("tail_block", 17)):
        exponentials = drawn(name).exp()
        share = exponentials[:, -heavy:].sum(-1) / exponentials.sum(-1)
        assert share.min() > 0.95
        assert drawn(name)[:, :-heavy].abs().max() < 0.01
        assert drawn(name, (3, 1)).min() >= 8


def test_one_hot_rows():
    for shape in ((5, 129), (64, 3), (1,), ()):
        assert (rows(drawn("one_hot", shape)).sum(-1) == 1).all()
    places = drawn("one_hot").argmax(-1)
    assert places[0] == 128
    assert places.unique().numel() == 5


@pytest.mark.parametrize(
    ("name", "odd"), [("one_nan", torch.isnan), ("one_inf", torch.isposinf), ("one_negative_inf", torch.isneginf)]
)
def test_a_single_odd_element(name, odd):
    for shape in SHAPES:
        x = drawn(name, shape)
        assert odd(x).sum() == 1
        assert (~x.isfinite()).sum() == 1


def discrete(kind):
    return [family.name for family in FAMILIES if kind in family.fills]


@pytest.mark.parametrize("name", [*discrete("integer"), "normal"])
def test_integers_stay_in_their_range(name):
    for shape in (*SHAPES, *EMPTY):
        for low, high in ((0, 1), (0, 2), (-3, 40), (7, 8)):
            x = integers(name, low, high, shape, seeded("0"))
            assert x.shape == shape
            assert x.dtype is torch.int64
            assert ((x >= low) & (x < high)).all()
            assert torch.equal(x, integers(name, low, high, shape, seeded("0")))


def test_integer_families():
    def of(name):
        return integers(name, 2, 1000, (129,), seeded("0"))

    assert (of("lowest") == 2).all()
    assert (of("highest") == 999).all()
    assert (of("one_lowest") == 2).sum() == 1
    assert (of("one_highest") == 999).sum() == 1
    assert torch.equal(of("ascending"), of("normal").sort().values)
    assert torch.equal(of("descending"), of("normal").sort(descending=True).values)
    assert of("equal").unique().numel() == 1
    assert 2 < of("equal")[0] < 999
    assert of("alternating").tolist()[:4] == [2, 999, 2, 999]


def test_boolean_families():
    def of(name):
        return booleans(name, (5, 129), seeded("0"))

    assert not of("lowest").any()
    assert of("highest").all()
    assert (~of("one_lowest")).sum() == 1
    assert of("one_highest").sum() == 1
    assert of("alternating").reshape(-1)[:4].tolist() == [False, True, False, True]
    assert 0.4 < of("normal").double().mean() < 0.6


@pytest.mark.parametrize("name", [*discrete("offsets"), "normal"])
def test_offsets_never_decrease_and_cover_everything(name):
    for total in (0, 1, 2, 129):
        for parts in (1, 2, 3, 5, 40):
            for seed in range(5):
                cuts = offsets(name, total, parts, seeded(str(seed)))
                assert cuts.dtype is torch.int32
                assert cuts.shape == (parts + 1,)
                assert cuts[0] == 0
                assert cuts[-1] == total
                assert (cuts.diff() >= 0).all()
    assert offsets(name, 0, 0, seeded("0")).tolist() == [0]


def test_offset_families():
    def of(name, seed=0):
        return offsets(name, 129, 5, seeded(str(seed))).diff().tolist()

    assert of("lowest") == [0, 0, 0, 0, 129]
    assert of("highest") == [129, 0, 0, 0, 0]
    assert of("alternating") == [0, 0, 129, 0, 0]
    assert of("equal") == [64, 0, 0, 0, 65]
    assert of("unit_parts") == [1, 1, 1, 1, 125]
    for seed in range(20):
        assert {0, 1} <= set(of("normal", seed)), "an empty part and one of length 1 are always there"


def test_a_family_leaves_the_other_kinds_of_input_as_they_are():
    usual = integers("normal", 0, 50, (9,), seeded("0"))
    for family in FAMILIES:
        if "integer" not in family.fills:
            assert torch.equal(integers(family.name, 0, 50, (9,), seeded("0")), usual)
    assert {item.fills for item in FAMILIES if "float" in item.fills} == {FLOAT}


def test_upstream_gradients_are_small_integers_too():
    case = Case(op="ops::some", dtype="bfloat16", dims=Dims(rows=5, cols=129), values="small_integers")
    output = torch.empty(5, 129, dtype=torch.bfloat16)
    exact = upstream(case, "out", output)
    assert set(exact.unique().tolist()) == {-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0}
    usual = upstream(replace(case, values="tail"), "out", output)
    assert torch.equal(usual, upstream(replace(case, values="normal"), "out", output))


def sample(values):
    """Draw x, weight and index, in that order."""
    case = Case(op="ops::some", dtype="float32", dims=Dims(rows=5, cols=129), values=values)
    drawer = Drawer(CPU)
    tensors = [drawer.tensor(case, ("rows", "cols"), name, None) for name in ("x", "weight")]
    return [*tensors, drawer.integers(case, 0, 9, ("rows",), "index")]


def test_a_first_only_family_leaves_the_other_tensors_ordinary():
    usual, odd, low = sample("normal"), sample("one_nan"), sample("lowest")
    assert odd[0].isnan().sum() == 1
    assert torch.equal(odd[1], usual[1])
    assert torch.equal(odd[2], usual[2])
    assert not low[2].any()
    assert torch.equal(low[0], usual[0])
    assert all(not tensor.any() for tensor in sample("zeros")[:2])


def test_an_unknown_family_is_refused_by_name():
    for draw in ("integers", "booleans", "offsets"):
        case = Case(op="ops::some", dtype="float32", dims=Dims(n=4), values="lowset")
        arguments = {
            "integers": (case, 0, 9, ("n",), "i"),
            "booleans": (case, ("n",), "m"),
            "offsets": (case, 4, 2, "o"),
        }
        with pytest.raises(BadCase, match="'lowset' is not a family of values"):
            getattr(Drawer(CPU), draw)(*arguments[draw])
