"""Launches that are seen, launches that do not run, and the configurations of autotuned kernels."""

import pytest
import torch
import triton
import triton.language as tl

from opcheck.backends.configs import configured, only_config, tuning
from opcheck.backends.interpreter import install
from opcheck.backends.launches import recorded
from opcheck.errors import BadCase

assert install().active

CONFIGS = [triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 16})]


@triton.jit
def tripled(x, y, n, BLOCK: tl.constexpr, ADD: tl.constexpr = 0):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 3.0 * tl.load(x + at, mask=at < n) + ADD, mask=at < n)


@triton.jit
def doubled(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def block(y, BLOCK: tl.constexpr):
    tl.store(y, BLOCK)


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]), 2)


def test_a_launch_is_seen_with_its_grid_and_constants():
    x, y = torch.ones(100), torch.zeros(100)
    with recorded() as found:
        tripled[grid](x, y, 100, BLOCK=64, num_warps=8)
        tripled[(4,)](x, y, 100, BLOCK=32, ADD=1)
    first, second = found.launches
    assert first.kernel == f"{__name__}.tripled"
    assert (first.grid, first.constants, first.warps, first.tuned) == ((2, 2, 1), {"BLOCK": 64, "ADD": 0}, 8, False)
    assert (second.grid, second.constants, second.warps) == ((4, 1, 1), {"BLOCK": 32, "ADD": 1}, 0)
    assert y.tolist() == [4.0] * 100, "recorded launches run as usual"
    with recorded():
        pass
    tripled[(1,)](x, y, 100, BLOCK=128)
    assert len(found.launches) == 2, "nothing is recorded behind the block"


def test_a_launch_that_does_not_run_writes_nothing():
    y = torch.zeros(100)
    with recorded(run=False) as found:
        tripled[(2,)](torch.ones(100), y, 100, BLOCK=64)
    assert len(found.launches) == 1
    assert y.sum() == 0
    tripled[(2,)](torch.ones(100), y, 100, BLOCK=64)
    assert y.sum() == 300


def test_an_error_in_the_block_puts_everything_back():
    with pytest.raises(ZeroDivisionError), recorded(run=False):
        raise ZeroDivisionError
    y = torch.zeros(4)
    tripled[(1,)](torch.ones(4), y, 4, BLOCK=4)
    assert y.tolist() == [3.0] * 4


@pytest.mark.parametrize(("index", "size"), [(0, 64), (1, 32), (2, 16), (3, 64)])
def test_one_configuration_runs_alone(index, size):
    tuned = triton.autotune(CONFIGS, key=[])(block)
    y = torch.zeros(1)
    with only_config(index), recorded() as found:
        tuned[(1,)](y)
    assert y.item() == size
    assert found.configs == {f"{__name__}.block": 3}
    (launch,) = found.launches
    assert launch.tuned
    assert launch.constants == {"BLOCK": size}
    assert launch.warps == (2 if size == 64 else 4)
    assert len(tuned.configs) == 3


def test_a_pruned_configuration_is_not_run():
    tuned = triton.autotune(
        CONFIGS, key=[], prune_configs_by={"early_config_prune": lambda configs, named, **rest: configs[:2]}
    )(block)
    y = torch.zeros(1)
    with only_config(2):
        tuned[(1,)](y)
    assert y.item() == 64, "the third is pruned: one of those that are not"


def test_a_case_names_its_configuration():
    tuned = triton.autotune(CONFIGS, key=[])(block)
    y = torch.zeros(1)
    for variant, size in (("", 64), ("eps=1.0", 64), ("%config=1", 32), ("eps=1.0,%config=2", 16)):
        with configured(variant):
            tuned[(1,)](y)
        assert y.item() == size, variant
    for variant in ("%config=-1", '%config="a"', "%config=true", "%other=1"):
        with pytest.raises(BadCase, match="variant"):
            configured(variant)


def test_tuning_runs_every_configuration_on_the_live_arguments():
    plain = triton.autotune(CONFIGS, key=[])(doubled)
    restored = triton.autotune(CONFIGS, key=[], restore_value=["x"])(doubled)
    for kernel, expected in ((plain, 2.0**4), (restored, 2.0)):
        x = torch.ones(100)
        with tuning() as tuned:
            kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
        assert x.tolist() == [expected] * 100
        assert tuned == {f"{__name__}.doubled"}
        x = torch.ones(100)
        kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
        assert x.tolist() == [2.0] * 100


def test_there_is_nothing_to_tune_with_one_configuration():
    single = triton.autotune(CONFIGS[:1], key=[])(doubled)
    x = torch.ones(64)
    with tuning() as tuned:
        single[(1,)](x, 64)
    assert x.tolist() == [2.0] * 64
    assert tuned == set()
