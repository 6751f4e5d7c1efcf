"""A small calibration: right kernels pass every law, faults beyond the printed limit do not, and the table can tell."""

import dataclasses
import math
import random

import pytest

from benchmarks.calibrate import calibrate
from benchmarks.calibration import table
from benchmarks.calibration.evidence import LAWS
from benchmarks.calibration.ops import OPS
from benchmarks.calibration.runner import Cell, run
from benchmarks.calibration.settings import STANDING, alternatives
from benchmarks.calibration.tail import summary
from opcheck.checks import all_checks


@pytest.fixture(scope="module")
def tally():
    return calibrate(6, "cpu", stride=43)


def cell(name, dtype="bfloat16", values="normal", seeds=3, **changes):
    op = next(item for item in OPS if item.name == name)
    sizes = {"rows": 9, "cols": 129}
    return Cell(
        op=dataclasses.replace(op, **changes),
        sizes=sizes,
        dtype=dtype,
        values=values,
        first=0,
        seeds=seeds,
        backend="cpu",
    )


def test_right_kernels_pass_every_law(tally):
    assert tally.told == {}
    assert {key.law for key in tally.ratios} == set(LAWS)
    assert {"float32", "float16", "bfloat16"} <= {key.dtype for key in tally.ratios}
    assert sum(map(len, tally.ratios.values())) > 500


def test_every_fault_beyond_the_printed_limit_is_caught(tally):
    assert {str(key) for key, item in tally.faults.items() if item.above_missed} == set()
    assert sum(item.above for item in tally.faults.values()) > 100
    assert {law for item in tally.faults.values() for law in item.first} >= {"numerics", "slices", "bias"}


@pytest.mark.parametrize(("name", "fault"), [("softmax", "half gradient"), ("rms_norm", "dropped last")])
def test_a_wrong_kernel_among_the_right_ones_raises_alarms(name, fault):
    wrong = next(item for item in OPS if item.name == name).faults[fault]
    found = run(cell(name, targets={"said to be right": wrong}))
    assert sum(found.alarms.values()) > 0
    assert "said to be right" in table.text(found)


def test_a_zeroed_row_beside_an_outlier_is_seen_by_the_slices_alone():
    found = run(cell("sum", values="outlier_row", seeds=1, faults={}))
    caught = [item for key, item in found.faults.items() if key.fault == "zeroed row beside an outlier"]
    assert [sum(item.first.values()) for item in caught] == [item.planted for item in caught] != []


def test_a_target_without_one_of_the_gradients_is_judged_by_what_it_has():
    op = next(item for item in OPS if item.name == "rms_norm")

    def partial(inputs, dy):
        return {name: value for name, value in op.targets["blocks"](inputs, dy).items() if name != "grad weight"}

    found = run(cell("rms_norm", seeds=12, targets={"partial": partial, "blocks": op.targets["blocks"]}))
    assert {key.tensor for key in found.ratios if key.kernel == "partial"} == {"out", "grad x"}
    assert "grad weight" in {key.tensor for key in found.faults}


def test_the_same_seed_gives_the_same_table():
    first, second = (table.data(run(cell("gelu"))) for _ in range(2))
    assert first == second


def test_every_constant_is_put_back_after_its_alternative():
    before = {setting.name: getattr(*setting.constant[:2]) for setting in alternatives() if setting.constant}
    run(cell("softmax", seeds=1, faults={}), alternatives())
    assert before == {setting.name: getattr(*setting.constant[:2]) for setting in alternatives() if setting.constant}


def test_every_alternative_is_judged_and_those_at_the_standing_values_agree():
    found = run(cell("silu", dtype="float32", seeds=1), alternatives())
    wanted = {setting.name for setting in alternatives() if setting.wide is not False}
    assert {key.setting for key in found.ratios} == wanted | {STANDING}
    for name in ("fudge wide 4", "slice k wide 16", "ulp 2", "siblings 8", "wide floor 2", "bias z 6"):
        law = next(setting.laws[0] for setting in alternatives() if setting.name == name)
        mine = {key[2:]: list(values) for key, values in found.ratios.items() if (key.setting, key.law) == (name, law)}
        theirs = {
            key[2:]: list(values) for key, values in found.ratios.items() if (key.setting, key.law) == (STANDING, law)
        }
        assert mine == theirs


def test_only_laws_with_numbers_are_calibrated():
    assert set(LAWS) <= set(all_checks())


@pytest.mark.parametrize(("rate", "expected"), [(2.0, math.exp(-2.0 * 5.0)), (4.0, math.exp(-4.0 * 5.0))])
def test_the_tail_of_an_exponential_is_carried_on_exactly(rate, expected):
    """log(measured / allowed) = -5 + an exponential of the given rate passes 0 with probability exp(-5 rate)."""
    draws = random.Random(0)
    found = summary([math.exp(draws.expovariate(rate) - 5.0) for _ in range(20000)])
    assert expected / 20 < found.exponential < expected * 20


def test_a_bounded_tail_never_alarms():
    draws = random.Random(1)
    found = summary([0.2 + 0.1 * draws.random() for _ in range(20000)])
    assert (found.alarms, found.pareto) == (0, 0.0)
    assert found.exponential < 1e-9


def test_quantiles_are_values_that_were_measured():
    found = summary([float(at) for at in range(1, 1001)])
    assert (found.count, found.median, found.q99, found.q999, found.largest) == (1000, 500.0, 990.0, 999.0, 1000.0)
    assert found.alarms == 999
