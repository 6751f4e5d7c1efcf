"""A finding names the line that it is about wherever its check knows one."""

from dataclasses import replace

import pytest

from opcheck.checks import all_checks
from opcheck.core.outcome import Crashed, Raised, Returned, TimedOut
from opcheck.core.verdict import Verdict
from tests.checks.test_controls import findings

CHECKS = all_checks()
WHERE = "ops/x/kernel.py:9"
LOST = (
    Raised(role="target", phase="forward", error="ValueError", message="no", where=WHERE),
    Crashed(role="target", reason="was killed by SIGSEGV", where=WHERE),
    TimedOut(role="target", seconds=1, where=WHERE),
)
#: Checks that ask for runs of their own, and so must tell when one does not come back.
ASKING = (
    "structure", "determinism", "library", "intact", "memory", "autograd", "composition", "fakes", "refusal",
    "randomness", "stress", "sanitize", "compile", "oracle",
)  # fmt: skip


@pytest.mark.parametrize(("check", "tensor", "place"), [
    ("memory", "x_ptr", "kernel.py:9"), ("sanitize", "memcheck", "kernel.py:9"), ("compile", "_kernel", "kernel.py:12"),
])  # fmt: skip
def test_what_is_seen_at_a_line_of_a_kernel_is_placed_there(check, tensor, place):
    found = [item for control in CHECKS[check].controls() for item in findings(check, control)]
    assert place in {item.place for item in found if item.tensor == tensor and item.verdict is not Verdict.PASS}
    assert not any(item.place for item in found if item.verdict is Verdict.PASS)


@pytest.mark.parametrize("name", ASKING)
def test_a_run_that_does_not_come_back_is_placed_at_its_line(name):
    told = 0
    for control in CHECKS[name].controls():
        for trial in control.seen:
            for lost in LOST:
                seen = {key: value for key, value in control.seen.items() if isinstance(value, Returned)} | {
                    trial: lost
                }
                for item in findings(name, replace(control, seen=seen)):
                    if str(lost).removeprefix("target ") in item.detail:
                        told += 1
                        assert item.place == WHERE, (trial, item)
    assert told
