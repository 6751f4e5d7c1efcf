"""What `memory` says of each kind of evidence, where it looks, and what an op without launches is told."""

from dataclasses import replace

import pytest

from opcheck.checks.memory import check
from opcheck.checks.protocol import example
from opcheck.core.guards import Banded, Guarded, Kernel, Launched, Swayed, Trespass, Unwritten
from opcheck.core.memory import ATEN_ONLY, NO_LAUNCH, Breach, Observe, Observed
from opcheck.core.outcome import Compare, Compared, Returned
from opcheck.core.verdict import Verdict

PLACE = {"kernel": "_kernel", "where": "kernel.py:9", "program": (2, 0, 0), "lane": 1}
COMPARED = {Compare(): Returned(evidence=Compared(tensors=()))}


def judged(found):
    seen = {**COMPARED, Observe(): Returned(evidence=found)}
    return check.judge(example(), seen, lambda dtype: check.limits())


@pytest.mark.parametrize(("breach", "said"), [
    (
        Breach(rule="outside", tensor="x_ptr", access="load", offset=387, total=387, count=3, **PLACE),
        "_kernel, kernel.py:9: program [2, 0, 0] lane 1 loads element 387 of x_ptr, whose memory ends at 387; "
        "3 such lanes",
    ),
    (
        Breach(rule="around", tensor="x_ptr", access="store", offset=-1, total=387, **PLACE),
        "_kernel, kernel.py:9: program [2, 0, 0] lane 1 stores element -1 of x_ptr, between or beside what the tensor "
        "has of its buffer",
    ),
    (
        Breach(rule="unwritten", tensor="y_ptr", access="atomic", **PLACE),
        "_kernel, kernel.py:9: program [2, 0, 0] lane 1 updates element 0 of y_ptr, which nobody has written since "
        "torch.empty",
    ),
    (
        Breach(rule="wrapped", tensor="x_ptr", access="load", offset=-3, meant=2**32 - 3, count=2, other="at k:7",
               **PLACE),
        "_kernel, kernel.py:9: an integer wraps; program [2, 0, 0] lane 1 loads element -3 of x_ptr at k:7 in place of "
        "4294967293; 2 such lanes",
    ),
    (Breach(rule="returned", tensor="out", offset=5, count=3, total=9),
     "3 of 9 elements were never written, the first is number 5"),
    (
        Breach(rule="race", tensor="y_ptr", access="store", count=2, other="program [0, 0, 0] stores at k:7", **PLACE),
        "_kernel, kernel.py:9: program [2, 0, 0] lane 1 stores element 0 of y_ptr, as program [0, 0, 0] stores at "
        "k:7; 2 such accesses",
    ),
    (Breach(rule="masked", tensor="out", kernel="_kernel", where="kernel.py:9"),
     "what masked lanes hold changes it: kernel.py:9 loads without other in _kernel"),
])  # fmt: skip
def test_a_breach_is_a_failure_of_its_tensor_with_its_place(breach, said):
    (finding,) = judged(Observed(launches=(("_kernel", 1),), breaches=(breach,)))
    assert (finding.verdict, finding.tensor, finding.detail) == (Verdict.FAIL, breach.tensor, said)
    assert finding.looks_like


def test_what_was_launched_is_said():
    (finding,) = judged(Observed(launches=(("forward", 1), ("backward", 2)), accesses=7, computed=("backward",)))
    assert finding.verdict is Verdict.PASS
    assert finding.detail == (
        "7 accesses in launches of forward x 1, backward x 2; pointers made from integers in backward are not judged"
    )


def test_no_launch_is_no_failure():
    (finding,) = judged(Observed())
    assert (finding.verdict, finding.detail) == (Verdict.PASS, NO_LAUNCH)


ON_GPU = replace(example(), case=replace(example().case, backend="cuda"))


def planned(subject, seen):
    return check.plan(subject, seen, lambda dtype: check.limits())


def test_the_comparison_comes_first():
    assert planned(example(), {}) == planned(ON_GPU, {}) == (Compare(),)
    assert planned(example(), COMPARED) == (Observe(),)
    assert planned(ON_GPU, COMPARED) == (Guarded(),)


@pytest.mark.parametrize(("found", "wanted"), [
    (Observed(), (Observe(), Guarded())),
    (Observed(launches=(("_kernel", 1),)), (Observe(),)),
    (Observed(blind="no repair"), (Observe(),)),
    (Observed(breaches=(Breach(rule="returned", tensor="out"),)), (Observe(),)),
])  # fmt: skip
def test_bands_are_for_what_the_observer_cannot_see(found, wanted):
    assert planned(example(), {**COMPARED, Observe(): Returned(evidence=found)}) == wanted


def guarded(found, subject=ON_GPU):
    seen = {**COMPARED, Guarded(): Returned(evidence=found)}
    return check.judge(subject, seen, lambda dtype: check.limits())


@pytest.mark.parametrize(("found", "tensor", "said"), [
    (
        Banded(trespasses=(Trespass(tensor="x", side="before", offset=-2, count=8, band=4096),)), "x",
        "8 bytes of the 4096 before it were written, the nearest at element -2, counted from its first one",
    ),
    (
        Banded(swayed=(Swayed(tensor="out", by="bands", offset=386, count=1, total=387),)), "out",
        "what lies outside of the tensors reaches it: 1 of 387 elements, the first is number 386, change their bits "
        "with it",
    ),
    (
        Banded(swayed=(Swayed(tensor="grad x", by="poison", offset=0, count=3, total=3, nan_only=True),)), "grad x",
        "what torch.empty holds before it is written reaches it: 3 of 3 elements, the first is number 0, are NaN "
        "where that is NaN",
    ),
    (
        Banded(unwritten=(Unwritten(tensor="out", offset=127, count=1, total=129),)), "out",
        "1 of 129 elements still hold what torch.empty gave, the first is number 127",
    ),
])  # fmt: skip
def test_what_bands_show_is_a_failure_of_its_tensor(found, tensor, said):
    (finding,) = guarded(found)
    assert (finding.verdict, finding.tensor, finding.detail) == (Verdict.FAIL, tensor, said)
    assert finding.looks_like


BANDS = "the memory around 2 tensors and 1 allocations is as it was"
OWN, ATEN = Kernel(name="mine(float*)", op="ops::x", count=2), Kernel(name="fill", op="aten::fill_")


@pytest.mark.parametrize(("found", "said"), [
    ({"launches": (Launched(kernel="ops.k", grid=(4, 1, 1), count=2),)}, "launches of ops.k [4, 1, 1] x 2"),
    ({"kernels": (ATEN, OWN)}, "kernels mine(float*) x 2"),
    ({"kernels": (ATEN, replace(ATEN, count=3))}, ATEN_ONLY),
    ({"unseen": "CUPTI is busy"}, "which kernels ran is not known (CUPTI is busy)"),
])  # fmt: skip
def test_what_ran_is_said(found, said):
    (finding,) = guarded(Banded(given=2, allocated=1, **found))
    assert (finding.verdict, finding.detail) == (Verdict.PASS, f"{said}; {BANDS}")


def test_on_the_cpu_no_kernel_is_known():
    (finding,) = guarded(Banded(given=2, allocated=1), example())
    assert finding.detail == f"{NO_LAUNCH}; {BANDS}"


def test_no_bands_are_put_around_far_tensors():
    subject = example()
    seen = {**COMPARED, Observe(): Returned(evidence=Observed())}
    far = replace(subject, case=replace(subject.case, layout="x=far"))
    assert Guarded() in check.plan(subject, seen, lambda dtype: check.limits())
    assert Guarded() not in check.plan(far, seen, lambda dtype: check.limits())
