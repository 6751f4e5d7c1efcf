"""Reductions, scans and atomics under the repaired interpreter."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from opcheck.backends.interpreter import install, memory
from tests.backends.interpreted.rounding import nearest

assert install().active


@triton.jit
def total(x, o, BLOCK: tl.constexpr, UPCAST: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    if UPCAST:
        v = v.to(tl.float32)
    tl.store(o, tl.sum(v, 0).to(tl.float32))


@triton.jit
def extremes(x, o, place, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.arange(0, ROWS)
    v = tl.load(x + r[:, None] * COLS + tl.arange(0, COLS)[None, :])
    tl.store(o + r, tl.max(v, 1))
    tl.store(o + ROWS + r, tl.min(v, 1))
    tl.store(place + r, tl.argmax(v, 1))
    tl.store(place + ROWS + r, tl.argmin(v, 1))


@triton.jit
def keep_nan(x, y, o, BLOCK: tl.constexpr, ALL: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if ALL:
        v = tl.maximum(tl.load(x + i), tl.load(y + i), propagate_nan=tl.PropagateNan.ALL)
    else:
        v = tl.maximum(tl.load(x + i), tl.load(y + i))
    tl.store(o + i, v)


@triton.jit
def sums(x, whole, down, across, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    v = tl.load(x + r[:, None] * COLS + c[None, :])
    tl.store(whole, tl.sum(v))
    tl.store(down + c, tl.sum(v, 0))
    tl.store(across + r[:, None], tl.sum(v, 1, keep_dims=True))


@triton.jit
def running(x, o, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0, reverse=REVERSE))


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, o, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, affine, reverse=REVERSE)
    tl.store(o + i, h)


@triton.jit
def composition(a, b, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    scale, shift = tl.reduce((tl.load(a + i), tl.load(b + i)), 0, affine)
    tl.store(o, scale)
    tl.store(o + 1, shift)


@triton.jit
def branchy_max(a, b):
    if a > b:
        return a
    return b


@triton.jit
def branching(x, o, BLOCK: tl.constexpr):
    tl.store(o, tl.reduce(tl.load(x + tl.arange(0, BLOCK)), 0, branchy_max))


@triton.jit
def pile_up(x, o, old, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(old + i, tl.atomic_add(o + i * 0, tl.load(x + i)))


@triton.jit
def copy(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_missing_upcast_shows(dtype):
    errors = {True: 0.0, False: 0.0}
    for seed in range(8):
        x = torch.randn(2048, generator=torch.Generator().manual_seed(seed)).to(dtype)
        for upcast in errors:
            o = torch.zeros(1)
            total[(1,)](x, o, BLOCK=2048, UPCAST=upcast)
            errors[upcast] += abs(o.item() - x.double().sum().item())
    assert errors[False] > 100 * errors[True]
    assert errors[True] < 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_sum_in_its_own_dtype_is_a_tree(dtype):
    # 1024 equal halves double at every level: exact. Added one by one they would stick at 256 * ulp.
    o = torch.zeros(1)
    total[(1,)](torch.full((1024,), 0.5, dtype=dtype), o, BLOCK=1024, UPCAST=False)
    assert o.item() == 512.0


def test_sums_along_every_axis():
    x = torch.arange(32, dtype=torch.float32).reshape(4, 8)
    whole, down, across = torch.zeros(1), torch.zeros(8), torch.zeros(4)
    sums[(1,)](x, whole, down, across, ROWS=4, COLS=8)
    assert whole.item() == 496.0
    assert down.tolist() == [48.0 + 4 * c for c in range(8)]
    assert across.tolist() == [28.0 + 64 * r for r in range(4)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_extremes_drop_nan_and_take_the_first_of_equals(dtype):
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1, 3, 3, nan], [nan, nan, nan, nan], [-inf, nan, -inf, -inf], [4, -4, 4, -4]], dtype=dtype)
    o, place = torch.zeros(8, dtype=dtype), torch.zeros(8, dtype=torch.int32)
    extremes[(1,)](x, o, place, ROWS=4, COLS=4)
    np.testing.assert_array_equal(o.float().numpy(), [3, nan, -inf, 4, 1, nan, -inf, -4])
    assert place.tolist() == [1, 0, 0, 0, 0, 0, 0, 1]


def test_maximum_keeps_nan_only_when_asked():
    nan = float("nan")
    x, y = torch.tensor([1.0, nan]).bfloat16(), torch.tensor([nan, 2.0]).bfloat16()
    o = torch.zeros(2, dtype=torch.bfloat16)
    keep_nan[(1,)](x, y, o, BLOCK=2, ALL=False)
    assert o.tolist() == [1.0, 2.0]
    keep_nan[(1,)](x, y, o, BLOCK=2, ALL=True)
    assert o.isnan().all()


@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum_of_integers_is_exact_and_of_bfloat16_rounds(reverse):
    x = torch.randint(-9, 9, (256,), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    o = torch.zeros_like(x)
    running[(1,)](x, o, BLOCK=256, REVERSE=reverse)
    exact = x.flip(0).cumsum(0).flip(0) if reverse else x.cumsum(0)
    assert torch.equal(o, exact.int())
    narrow = torch.ones(512, dtype=torch.bfloat16)
    o = torch.zeros_like(narrow)
    running[(1,)](narrow, o, BLOCK=512, REVERSE=reverse)
    exact = np.arange(1.0, 513.0)[:: -1 if reverse else 1]
    error = np.abs(o.double().numpy() - exact)
    assert 0 < error.max() <= 16
    assert (error <= 8 * 2.0**-8 * exact).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_keeps_the_order_of_its_operands(reverse):
    rng = np.random.default_rng(2)
    a, b = rng.uniform(0.5, 1.0, 64).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    o = torch.zeros(64)
    recurrence[(1,)](torch.from_numpy(a), torch.from_numpy(b), o, BLOCK=64, REVERSE=reverse)
    exact, h = np.zeros(64), 0.0
    for i in reversed(range(64)) if reverse else range(64):
        h = exact[i] = a[i].astype(np.float64) * h + b[i]
    np.testing.assert_allclose(o.numpy(), exact, rtol=1e-5, atol=1e-6)


def test_a_reduction_keeps_the_order_of_its_operands():
    a, b = torch.tensor([2.0, 3.0, 5.0, 7.0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    o = torch.zeros(2)
    composition[(1,)](a, b, o, BLOCK=4)
    # ((1 * 3 + 2) * 5 + 3) * 7 + 4
    assert o.tolist() == [210.0, 200.0]


def test_a_combine_function_that_branches_sees_single_elements():
    x = torch.tensor([3.0, 9.0, -2.0, 4.0, 8.0, 1.0, 0.0, 9.5])
    o = torch.zeros(1)
    branching[(1,)](x, o, BLOCK=8)
    assert o.item() == 9.5


def test_bfloat16_atomics_add_one_after_the_other():
    x, o, old = (torch.ones(n, dtype=torch.bfloat16) for n in (512, 1, 512))
    o.zero_()
    pile_up[(1,)](x, o, old, BLOCK=512)
    assert o.item() == 256.0  # 256 + 1 is a tie and goes to even
    assert old.float().tolist() == [min(float(i), 256.0) for i in range(512)]


def test_half_atomics_overflow_to_inf():
    x, o, old = torch.full((4,), 60000.0).half(), torch.zeros(1).half(), torch.zeros(4).half()
    pile_up[(1,)](x, o, old, BLOCK=4)
    assert o.item() == float("inf")


def test_an_observer_sees_addresses_and_may_withhold_lanes():
    x, o = torch.arange(8.0).bfloat16(), torch.full((8,), -1.0).bfloat16()
    seen = []

    def observer(access):
        seen.append((access.kind, access.itemsize, (access.pointers[access.mask]).tolist()))
        return access.mask & (access.pointers != o.data_ptr() + 2 * 2)

    with memory.observing(observer):
        copy[(1,)](x, o, 5, BLOCK=8)
    addresses = [[t.data_ptr() + 2 * i for i in range(5)] for t in (x, o)]
    assert seen == [("load", 2, addresses[0]), ("store", 2, addresses[1])]
    assert o.tolist() == [0.0, 1.0, -1.0, 3.0, 4.0, -1.0, -1.0, -1.0]
    copy[(1,)](x, o, 5, BLOCK=8)
    assert len(seen) == 2
    assert o[2].item() == 2.0


def test_own_rounding_oracle_is_not_vacuous():
    assert nearest(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8]), "bfloat16").tolist() == [1.0, 1 + 2.0**-6]
    assert nearest(np.array([464.0, 465.0, 1e9]), "float8_e4m3fn").tolist() == [448.0, 448.0, 448.0]
    assert nearest(np.array([65519.0, 65520.0]), "float16").tolist() == [65504.0, np.inf]
