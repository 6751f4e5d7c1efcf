"""What `compile` says of builds, for which targets and levels it asks, and what the death of a compiler is."""

from dataclasses import replace

import pytest

from opcheck.checks.compile import CompileLimits, check
from opcheck.checks.protocol import example
from opcheck.core.building import TARGETS, Binary, Build, Built
from opcheck.core.outcome import Returned
from opcheck.core.report import CaseReport
from opcheck.core.verdict import Verdict
from opcheck.render.text import failure
from opcheck.run.events import Death
from opcheck.session.building import merged
from opcheck.session.handout import _lost

GOOD = Binary(kernel="_kernel", where="k.py:9", target="sm_90", registers=40, spills=0, shared=1024, threads=128)
LIMITED = Verdict.PASS_WITH_LIMITATIONS


def judged(*binaries, limits=None, **more):
    numbers = limits or CompileLimits()
    (trial,) = check.plan(example(), {}, lambda dtype: numbers)
    return check.judge(example(), {trial: Returned(evidence=Built(binaries=binaries, **more))}, lambda dtype: numbers)


def test_figures_are_of_the_hungriest_kernel_on_each_target():
    (found,) = judged(GOOD, replace(GOOD, registers=48, shared=16, kernel="_other"), replace(GOOD, target="gfx942"))
    assert found.detail == (
        "3 builds of 2 kernels; sm_90 at most 48 registers and 0 spilled, 1024 bytes of shared memory; "
        "gfx942 at most 40 registers and 0 spilled, 1024 bytes of shared memory"
    )


def test_a_remark_on_several_targets_is_made_once():
    first, _ = judged(*(replace(GOOD, double="k.py:12", target=target) for target in ("sm_80", "sm_90")))
    assert first.detail.endswith("the first at k.py:12; a GPU has few FP64 units (sm_80, sm_90)")


def test_an_autotuned_kernel_of_which_not_all_was_built_is_not_failed():
    found, _ = judged(replace(GOOD, config=0, shared=1 << 20), offered={"_kernel": 2})
    assert found.verdict is LIMITED
    assert found.detail.endswith("for sm_90 the autotuner leaves out 0")


def test_a_compilation_error_in_a_configuration_is_a_failure_for_the_tuner_raises_it():
    items = (replace(GOOD, config=0), replace(GOOD, config=1, problem="ValueError: no"))
    found, _ = judged(*items, offered={"_kernel": 2})
    assert found.verdict is Verdict.FAIL
    found, _ = judged(items[0], replace(items[1], tolerated=True), offered={"_kernel": 2})
    assert found.verdict is LIMITED


@pytest.mark.parametrize(("first", "second", "said"), [
    # Each launch has a configuration without spills: the tuner chooses for each apart.
    ((0, 99), (99, 0), None),
    # The second launch has none; the better of its configurations is what must be lived with.
    ((0, 99), (99, 50), "50 words"),
])  # fmt: skip
def test_spills_of_an_autotuned_kernel_count_by_launch(first, second, said):
    items = (
        replace(GOOD, config=config, turn=turn, spills=spills)
        for turn, launch in enumerate((first, second))
        for config, spills in enumerate(launch)
    )
    found = [item for item in judged(*items, offered={"_kernel": 2}) if item.verdict is LIMITED]
    assert len(found) == (said is not None)
    assert all(said in item.detail for item in found)


def test_limits_are_the_policy_s():
    (found,) = judged(replace(GOOD, spills=99, tf32="k.py:12"), limits=CompileLimits(spills=99, tf32=True))
    assert found.verdict is Verdict.PASS


def test_full_has_more_targets_and_everything_of_every_dtype():
    limits = CompileLimits(targets=("sm_90",), targets_full=("sm_80", "sm_90"))
    first = example()
    second = replace(first, contract=replace(first.contract, dtypes=("float16", "float32")))
    ask = lambda subject: check.plan(subject, {}, lambda dtype: limits)  # noqa: E731
    assert ask(first) == (Build(targets=("sm_90",), thorough=True),)
    assert ask(second) == (Build(targets=("sm_90",), thorough=False),)
    everything = (Build(targets=("sm_90", "sm_80"), thorough=True, every_shape=True),)
    assert ask(replace(second, level="full")) == everything


def test_nothing_is_asked_for_without_targets():
    assert check.plan(example(), {}, lambda dtype: CompileLimits(targets=())) == ()
    assert check.applies(replace(example(), level="quick"))
    assert check.applies(replace(example(), representative=False))


@pytest.mark.parametrize(("target", "kilobytes"), [("sm_80", 163), ("sm_86", 99), ("sm_90", 227), ("gfx942", 64)])
def test_a_block_may_have_all_the_shared_memory_that_the_vendor_says(target, kilobytes):
    assert replace(GOOD, target=target, shared=kilobytes * 1024).excess == ""
    assert replace(GOOD, target=target, shared=kilobytes * 1024 + 1).excess
    assert TARGETS[target].shared == kilobytes * 1024


def test_a_case_s_report_has_what_its_builds_showed():
    whole = CaseReport(id="ops::f[float32;n=3;normal;;;;0]@cpu", verdict=Verdict.PASS, seconds=1.0)
    built = replace(whole, verdict=Verdict.FAIL, findings=judged(replace(GOOD, problem="ValueError: no")), seconds=2.0)
    found = merged(whole, built)
    assert (found.verdict, found.findings, found.seconds) == (Verdict.FAIL, built.findings, 3.0)
    assert merged(whole, None) is whole


def test_a_build_is_run_again_by_its_check():
    case = CaseReport(id="ops::f[float32;n=3;normal;;;;0]@cpu", verdict=Verdict.FAIL)
    (found, *_) = judged(replace(GOOD, problem="ValueError: no"))
    again = failure(case, found).splitlines()[-1]
    assert again == f"  again: python -m opcheck audit --backend cpu --check compile --case '{case.id}'"


def test_a_compiler_that_dies_fails_its_kernel():
    case_id = example().case.id
    last = {"start": case_id, "label": "build _kernel for sm_90", "role": "target"}
    death = Death(reason="killed by SIGABRT", timed_out=False, log="LLVM ERROR: cannot select")
    (found,) = _lost(case_id, last, death, 60.0).findings
    assert (found.check, found.verdict) == ("compile", Verdict.FAIL)
    assert "during build _kernel for sm_90" in found.detail
    assert "cannot select" in found.detail
