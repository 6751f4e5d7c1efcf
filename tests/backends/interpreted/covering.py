"""What launches reach of kernels; the lines are those of tests/covered/ops_covered/kernels.py, read there by eye."""

import pytest
import torch
from triton.runtime import interpreter

from opcheck.backends.interpreter import autotune, install
from opcheck.backends.interpreter.coverage import Recorder, inventory
from opcheck.core.reached import merged
from tests.covered.ops_covered import kernels

assert install().active

MODULE = "tests.covered.ops_covered.kernels"
X = torch.arange(64, dtype=torch.float32)


def coverage(recorder):
    """Return what was reached so far, by the function's name, nothing of which was told before."""
    sources, ran = recorder.take()
    by_key = {source.key: source for source in sources}
    found = {}
    for key, source in by_key.items():
        found[source.name.rpartition(".")[2]] = merged(source, [("op", item) for item in ran if item.function == key])
    return found


def gaps(item):
    return [(gap.first, gap.last) for gap in item.gaps]


def masks(item):
    return {mask.line: (mask.access, mask.seen, mask.block) for mask in item.masks}


def scaled(n, limit=0, twice=False):
    y = torch.full((64,), -1.0)
    kernels.scaled[(-(-n // 4),)](X, y, n, LIMIT=limit, TWICE=twice, BLOCK=4)
    return y


def test_a_branch_that_is_not_taken_and_a_mask_that_is_never_partial():
    recorder = Recorder()
    with recorder.recording():
        y = scaled(8)
    assert y[:9].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -1], "a marked kernel computes what it did"
    found = coverage(recorder)
    assert found.keys() == {"scaled", "clipped"}
    kernel, device = found["scaled"], found["clipped"]
    assert (kernel.kernel, kernel.place) == (f"{MODULE}.scaled", f"{kernels.__file__}:17")
    assert (kernel.lines, kernel.reached, kernel.excluded, gaps(kernel)) == (8, 7, 0, [(22, 22)])
    assert kernel.gaps[0].unless == "`if TWICE` (line 21) was never true"
    assert masks(kernel) == {20: ("load", ("all on",), True), 26: ("store", ("all on",), True)}
    assert [mask.line for mask in kernel.never_partial] == [20, 26]
    assert (device.place, device.lines, device.reached, gaps(device)) == (f"{kernels.__file__}:8", 4, 2, [(11, 12)])
    assert device.gaps[0].unless == "`if LIMIT > 0` (line 10) was never true"
    assert device.masks == ()


def test_with_the_cases_that_were_missing_all_is_reached():
    recorder = Recorder()
    with recorder.recording():
        scaled(8)
        assert scaled(6, twice=True)[:7].tolist() == [0, 2, 4, 6, 8, 10, -1]
        assert scaled(6, limit=3)[:7].tolist() == [0, 1, 2, 3, 3, 3, -1]
    for item in coverage(recorder).values():
        assert (item.reached, item.gaps, item.never_partial) == (item.lines, (), ())
        assert item.specialisations == 3


def test_specialisations_say_what_they_leave_out_of_the_whole():
    recorder = Recorder()
    with recorder.recording():
        scaled(8)
        scaled(6, twice=True)
        scaled(6, limit=3)
    found = coverage(recorder)
    plain, twice, limited = (
        f"BLOCK=4, LIMIT={limit}, TWICE={twice}" for limit, twice in ((0, False), (0, True), (3, False))
    )
    assert {(item.specialisations, item.missing, item.never_partial) for item in found["scaled"].differences} == {
        ((plain,), ("22",), (20, 26)),
        ((twice,), ("24-25",), ()),
        ((limited,), ("22",), ()),
    }
    (only,) = found["clipped"].differences
    assert only.missing == ("11-12",)
    assert only.specialisations == (f"scaled({plain})", f"scaled({twice})")


def test_warps_make_no_specialisation():
    recorder = Recorder()
    with recorder.recording():
        for warps in (1, 4):
            kernels.scaled[(1,)](
                X, torch.empty(64), 4, LIMIT=0, TWICE=False, BLOCK=4, num_warps=warps, num_stages=warps
            )
    assert coverage(recorder)["scaled"].specialisations == 1


def test_a_mask_that_is_off_and_one_by_position_and_one_of_a_single_lane():
    """8 lanes over 8 and 12 columns: the second block of 12 is on in 4 lanes; no row is beyond the last one."""
    recorder, y = Recorder(), torch.empty(2)
    with recorder.recording():
        kernels.peak[(2,)](X, y, 2, 12, BLOCK=8)
    assert y.tolist() == [11.0, 23.0]
    found = coverage(recorder)
    peak = found["peak"]
    assert (peak.lines, peak.reached, gaps(peak)) == (8, 7, [(47, 47)]), "a line of two statements needs both"
    assert peak.gaps[0].unless == "`if n < 0` (line 47) was never true"
    assert masks(peak) == {45: ("load", ("all on", "partly on"), True), 48: ("store", ("all on",), False)}
    assert [mask.line for mask in peak.never_partial] == [48]
    assert (found["larger"].lines, found["larger"].reached) == (2, 2), "a combine function is reached by tl.reduce"
    with recorder.recording():
        kernels.peak[(3,)](X, y, 2, 12, BLOCK=8)
    ((_, ran),) = [(item.function, item) for item in recorder.take()[1] if item.kernel.endswith("peak") and item.masks]
    whole = merged(next(item for item in inventory([MODULE]) if item.name.endswith("peak")), [("op", ran)])
    assert whole.never_partial == (), "on in two programs and off in one: all that a single lane can be"


def test_a_loop_that_is_never_entered():
    recorder = Recorder()
    with recorder.recording():
        kernels.peak[(1,)](X, torch.empty(1), 0, -4, BLOCK=8)
    found = coverage(recorder)["peak"]
    assert gaps(found) == [(44, 45)]
    assert found.gaps[0].unless == "the loop of line 43 was never entered"
    assert masks(found) == {48: ("store", ("all off",), False)}, "an access that is not reached has no state"


def test_what_the_author_excludes_is_counted_apart():
    recorder = Recorder()
    with recorder.recording():
        kernels.guarded[(1,)](X, torch.zeros(8), 6, 3, BLOCK=8)
    found = coverage(recorder)["guarded"]
    # Excluded: the `if` of line 54 with its block, and the block of line 61's `else`. Line 64's comment stands alone.
    assert (found.lines, found.excluded, found.reached) == (6, 5, 5)
    assert gaps(found) == [(58, 58)]
    assert found.gaps[0].unless == "`if mode == 2` (line 57) was never true"
    assert masks(found) == {60: ("load", ("partly on",), True), 65: ("atomic_add", ("partly on",), True)}
    with recorder.recording():
        kernels.guarded[(1,)](X, torch.zeros(8), 8, 1, BLOCK=8)
    ran = recorder.take()[1]
    source = next(item for item in inventory([MODULE]) if item.name.endswith("guarded"))
    assert merged(source, [("op", item) for item in ran]).masks == (), "the excluded store counts for nothing"


@pytest.mark.parametrize("configs", [(0,), (0, 2)])
def test_configurations_that_were_not_launched(configs):
    recorder = Recorder()
    with recorder.recording():
        for index in configs:
            with autotune.select_config(index):
                kernels.copied[lambda meta: (-(-20 // meta["BLOCK"]),)](X, torch.empty(64), 20)
    ran = [("op", item) for item in recorder.take()[1]]
    source = next(item for item in inventory([MODULE]) if item.name.endswith("copied"))
    found = merged(source, ran)
    # The first two differ in warps alone; the last one is always pruned.
    assert found.unlaunched == (("BLOCK=16", "BLOCK=32") if configs == (0,) else ("BLOCK=32",))
    assert found.specialisations == len(configs)
    assert (gaps(found), found.gaps[0].unless) == ([(83, 83)], "`if EVEN` (line 82) was never true")


def test_a_grid_without_programs_is_a_launch():
    recorder = Recorder()
    with recorder.recording():
        scaled(0)
    found = coverage(recorder)
    assert (found["scaled"].reached, gaps(found["scaled"])) == (0, [(18, 26)])
    assert found.keys() == {"scaled"}


def test_what_was_told_is_not_told_again_and_a_source_only_once():
    recorder = Recorder()
    with recorder.recording():
        scaled(8)
        assert len(recorder.take()[0]) == 2
        scaled(8)
        sources, ran = recorder.take()
    assert (sources, len(ran)) == ([], 2)
    assert recorder.take() == ([], [])


def test_kernels_outside_of_the_block_carry_no_marks():
    recorder = Recorder()
    scaled(8)
    plain = interpreter.InterpretedFunction.rewritten_fn[kernels.scaled.fn]
    with recorder.recording():
        scaled(8)
        assert interpreter.InterpretedFunction.rewritten_fn[kernels.scaled.fn] is not plain
    recorder.clear()
    scaled(8)
    assert interpreter.InterpretedFunction.rewritten_fn[kernels.scaled.fn] is plain
    assert recorder.take() == ([], [])
    assert not any(name.startswith("_opcheck_") for name in plain.__code__.co_names)


def test_a_kernel_that_raises_keeps_what_ran_before():
    recorder = Recorder()
    with recorder.recording(), pytest.raises(Exception, match="division"):
        kernels.scaled[(1,)](X, X, 4, LIMIT=Bad(), TWICE=False, BLOCK=4)
    found = coverage(recorder)
    assert gaps(found["scaled"]) == [(22, 22)]
    assert gaps(found["clipped"]) == [(11, 13)], "line 10 raised, but it was reached"


class Bad:
    def __gt__(self, other):
        return 1 / 0


def test_the_inventory_has_every_function_of_the_modules_once():
    found = {item.name.rpartition(".")[2]: item for item in inventory(["tests.covered"])}
    lines = {name: item.line for name, item in found.items()}
    assert lines == {
        "clipped": 8, "scaled": 17, "larger": 34, "peak": 40,
        "guarded": 52, "copied": 80, "forgotten": 89, "parked": 95,
    }  # fmt: skip
    assert [item.line for item in found["forgotten"].statements] == [90, 91]
    assert found["parked"].excluded
    assert merged(found["parked"], []).lines == 0
    idle = merged(found["forgotten"], [])
    assert (idle.ops, idle.lines, idle.reached, gaps(idle)) == ((), 2, 0, [(90, 91)])
    assert inventory(["tests.covered.ops"]) == []


def test_every_mask_of_the_file_is_found():
    found = {item.name.rpartition(".")[2]: item.masks for item in inventory([MODULE])}
    assert {
        name: [(m.line, m.access, m.text, m.excluded) for m in masks] for name, masks in found.items() if masks
    } == {
        "scaled": [(20, "load", "inside", False), (26, "store", "inside", False)],
        "peak": [(48, "store", "row < rows", False), (45, "load", "at < n", False)],
        "guarded": [
            (65, "atomic_add", "at < n", False),
            (55, "store", "at < n", True),
            (60, "load", "at < n", False),
        ],
        "copied": [(85, "store", "at < n", False), (85, "load", "at < n", False)],
    }
