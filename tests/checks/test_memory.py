"""What `memory` says of each kind of evidence, where it looks, and what an op without launches is told."""

from dataclasses import replace

import pytest

from opcheck.checks.memory import check
from opcheck.checks.protocol import example
from opcheck.core.memory import NO_LAUNCH, Breach, Observe, Observed
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


def test_it_looks_on_the_interpreter_only():
    subject = example()
    assert check.applies(subject) == ""
    on_gpu = replace(subject, case=replace(subject.case, backend="cuda"))
    assert check.applies(on_gpu) == "kernels are observed on the interpreter only"


def test_the_comparison_comes_first():
    assert check.plan(example(), {}, lambda dtype: check.limits()) == (Compare(),)
    assert check.plan(example(), COMPARED, lambda dtype: check.limits()) == (Observe(),)
